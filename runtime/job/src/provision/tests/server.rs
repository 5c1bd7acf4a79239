//! A server on the loopback address with responses that a test chooses.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A client's request.
pub(super) struct Request {
    /// How many came before it.
    pub(super) number: usize,
    /// Its head.
    pub(super) head: String,
}

/// The behavior of the server.
pub(super) enum Answer {
    /// Sends a file, or the requested range of it.
    File(Vec<u8>),
    /// Sends the whole file, regardless of the requested range.
    Whole(Vec<u8>),
    /// Promises a file and closes the connection after so many bytes.
    Broken { content: Vec<u8>, after: usize },
    /// Refuses.
    Status(u32),
    /// Asks for a log-in.
    Locked,
    /// Sends elsewhere.
    Redirect(String),
    /// Says nothing.
    Hangs,
}

/// A server; it ends with the test's process.
pub(super) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Request {
    /// The requested path, without its query.
    pub(super) fn path(&self) -> &str {
        self.head.split([' ', '?']).nth(1).unwrap_or_default()
    }

    fn range(&self) -> Option<usize> {
        let (_, from) = self.head.split_once("Range: bytes=")?;
        from.split('-').next()?.parse().ok()
    }
}

impl Server {
    /// Starts a server with what it answers.
    pub(super) fn start(answer: impl Fn(&Request) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming().flatten() {
                let head = head(&stream);
                let number = seen.lock().unwrap().len();
                seen.lock().unwrap().push(head.clone());
                let request = Request { number, head };
                let answer = answer(&request);
                if matches!(answer, Answer::Hangs) {
                    open.push(stream);
                } else {
                    // A closed connection is not an error of the server.
                    let _ = give(stream, &request, answer);
                }
            }
        });
        Self { address, requests }
    }

    /// The address of a path on it.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The heads of the requests so far.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn head(stream: &TcpStream) -> String {
    let mut head = String::new();
    let mut lines = BufReader::new(stream);
    while lines.read_line(&mut head).is_ok_and(|length| length > 2) {}
    head
}

fn give(mut stream: TcpStream, request: &Request, answer: Answer) -> std::io::Result<()> {
    let mut say = |status: &str, more: &str, length: usize, content: &[u8]| {
        write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{more}\r\n")?;
        stream.write_all(content)
    };
    match answer {
        Answer::File(content) => match request.range() {
            Some(from) => {
                let range =
                    format!("Content-Range: bytes {from}-{}/{}\r\n", content.len() - 1, content.len());
                say("206 Partial Content", &range, content.len() - from, &content[from..])
            }
            None => say("200 OK", "", content.len(), &content),
        },
        Answer::Whole(content) => say("200 OK", "", content.len(), &content),
        Answer::Broken { content, after } => say("200 OK", "", content.len(), &content[..after]),
        Answer::Status(status) => say(&format!("{status} No"), "", 0, b""),
        Answer::Locked => say("401 Who", "WWW-Authenticate: Basic realm=\"x\"\r\n", 0, b""),
        Answer::Redirect(to) => say("302 Found", &format!("Location: {to}\r\n"), 0, b""),
        Answer::Hangs => Ok(()),
    }
}
