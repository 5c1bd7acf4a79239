use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;

use super::*;

/// A server on loopback that gives each connection the next of some responses; returns its address, and what was
/// requested.
fn serve(responses: Vec<Vec<u8>>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let mut requests = Vec::new();
        for response in responses {
            let (mut stream, _) = listener.accept().unwrap();
            let mut text = String::new();
            for line in BufReader::new(&stream).lines() {
                let line = line.unwrap();
                if line.is_empty() {
                    break;
                }
                text += &(line.to_ascii_lowercase() + "\n");
            }
            requests.push(text);
            // The client may have seen enough.
            let _ = stream.write_all(&response);
        }
        requests
    });
    (address, thread)
}

fn get(url: &str, known: Option<&Validators>, limit: u64) -> (Result<Option<Validators>>, Vec<u8>) {
    let mut file = tempfile::tempfile().unwrap();
    let request = DownloadRequest { url, known, limit };
    let result = WebClient::default().download(&request, &mut file, &AtomicBool::new(false));
    let mut content = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut content).unwrap();
    (result, content)
}

fn response(head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n{body}").into_bytes()
}

#[test]
fn a_file_that_has_not_changed_is_not_sent_again() {
    let (address, server) = serve(vec![
        response("200 OK\r\nContent-Length: 2\r\nETag: \"v1\"\r\nLast-Modified: then", "ab"),
        response("304 Not Modified", ""),
        response("304 Not Modified", ""),
    ]);
    let (first, content) = get(&address, None, 100);
    let mut known = first.unwrap().unwrap();
    assert_eq!((content, known.etag.as_deref()), (b"ab".to_vec(), Some("\"v1\"")));
    assert_eq!(get(&address, Some(&known), 100).0, Ok(None));
    known.etag = None;
    assert_eq!(get(&address, Some(&known), 100).0, Ok(None));
    let requests = server.join().unwrap();
    assert!(!requests[0].contains("if-"), "{}", requests[0]);
    assert!(requests[1].contains("if-none-match: \"v1\"\n"), "{}", requests[1]);
    assert!(requests[2].contains("if-modified-since: then\n"), "{}", requests[2]);
}

#[test]
fn an_interrupted_download_restarts() {
    let (address, server) = serve(vec![
        response("200 OK\r\nContent-Length: 4", "ab"),
        response("503 Service Unavailable", ""),
        response("200 OK\r\nContent-Length: 4", "cdef"),
    ]);
    let (done, content) = get(&address, None, 100);
    assert!(done.is_ok(), "{done:?}");
    assert_eq!(content, b"cdef");
    server.join().unwrap();
}

#[test]
fn size_and_redirects_are_bounded() {
    let (address, server) = serve(vec![response("200 OK\r\nContent-Length: 101", "")]);
    assert!(get(&address, None, 100).0.unwrap_err().message().contains("larger than 100 bytes"));
    server.join().unwrap();
    // A body without an end.
    let chunk = format!("40\r\n{}\r\n", "x".repeat(64)).repeat(4);
    let (address, server) = serve(vec![response("200 OK\r\nTransfer-Encoding: chunked", &chunk)]);
    assert!(get(&address, None, 100).0.unwrap_err().message().contains("larger than 100 bytes"));
    server.join().unwrap();
    let (address, server) = serve(vec![response("302 Found\r\nLocation: /again", ""); MAX_REDIRECTS + 1]);
    assert!(get(&address, None, 100).0.unwrap_err().message().contains("more than 10 times"));
    server.join().unwrap();
    let (address, server) = serve(vec![response("302 Found\r\nLocation: file:///etc/passwd", "")]);
    assert!(get(&address, None, 100).0.unwrap_err().message().contains("not a URL"));
    server.join().unwrap();
    let (address, server) = serve(vec![response("404 Not Found", "")]);
    assert!(get(&address, None, 100).0.unwrap_err().message().contains("404 Not Found"));
    server.join().unwrap();
}

#[test]
fn addresses_may_be_relative() {
    let base: Uri = "https://h:1/a/b?c".parse().unwrap();
    let check = |location: &str| resolve(&base, location).unwrap_or_default();
    assert_eq!(check("x#y"), "https://h:1/a/x");
    assert_eq!(check("/x"), "https://h:1/x");
    assert_eq!(check("//o/x"), "https://o/x");
    assert_eq!(check("http://o/x"), "http://o/x");
    assert_eq!(check("ftp://o/x"), "");
    assert_eq!(check("http:///x"), "");
}
