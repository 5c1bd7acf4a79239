//! Messages, against bytes that others wrote.

use super::*;

/// Messages of libdbus 1.14: the reply of `dbus-daemon` to `Hello`, and an error reply.
const RESPONSE: &[u8] = b"l\x02\x01\x01\x09\0\0\0\x01\0\0\0\x3d\0\0\0\x06\x01s\0\x04\0\0\0:1.0\0\0\0\0\x05\x01u\0\x01\0\0\0\x08\x01g\0\x01s\0\0\x07\x01s\0\x14\0\0\0org.freedesktop.DBus\0\0\0\0\x04\0\0\0:1.0\0";
const REFUSED: &[u8] = b"l\x03\x01\x01\x05\0\0\0\x04\0\0\0\x29\0\0\0\x04\x01s\0\x03\0\0\0a.B\0\0\0\0\0\x05\x01u\0\x03\0\0\0\x08\x01g\0\x01s\0\0\x07\x01s\0\x01\0\0\0x\0\0\0\0\0\0\0\0\0\0\0";

fn call(body: Body) -> Message {
    Message {
        kind: METHOD_CALL,
        serial: 7,
        path: "/o".to_owned(),
        interface: "i.I".to_owned(),
        member: "M".to_owned(),
        body,
        ..Message::default()
    }
}

#[cfg(target_endian = "little")]
#[test]
fn what_others_wrote_is_read() {
    let message = Message::decode(RESPONSE).expect("a message");
    assert_eq!((message.kind, message.serial, message.reply_serial), (METHOD_RETURN, 1, Some(1)));
    assert_eq!(message.body.texts(), [":1.0"]);
    // A truncated message is not a message.
    assert_eq!(Message::length(&RESPONSE[..FIXED_HEADER_SIZE]), Some(RESPONSE.len()));
    assert!((0..RESPONSE.len()).all(|end| Message::decode(&RESPONSE[..end]).is_none()));
    let refused = Message::decode(&REFUSED[..REFUSED.len() - 3]);
    assert_eq!(refused.map(|message| message.kind), None, "a length that is not that of its fields");
}

#[cfg(target_endian = "little")]
#[test]
fn a_call_is_written_as_the_specification_says() {
    let body = Body::default().with_value(&Value::Text("u".to_owned())).with_properties(&[
        ("A".to_owned(), Value::Uint64(1)),
        ("B".to_owned(), Value::Numbers(vec![2, 3])),
        ("C".to_owned(), Value::Pairs(vec![("x".to_owned(), "r".to_owned())])),
    ]);
    assert_eq!(body.signature, "sa(sv)");
    let expected: &[u8] = b"\x01\0\0\0u\0\0\0\x56\0\0\0\0\0\0\0\
        \x01\0\0\0A\0\x01t\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\
        \x01\0\0\0B\0\x02au\0\0\0\x08\0\0\0\x02\0\0\0\x03\0\0\0\
        \x01\0\0\0C\0\x05a(ss)\0\0\0\0\x0e\0\0\0\0\0\0\0\x01\0\0\0x\0\0\0\x01\0\0\0r\0";
    assert_eq!(body.bytes.escape_ascii().to_string(), expected.escape_ascii().to_string());
    let written = call(Body::default()).encode("d");
    let expected: &[u8] = b"l\x01\0\x01\0\0\0\0\x07\0\0\0\x3a\0\0\0\
        \x01\x01o\0\x02\0\0\0/o\0\0\0\0\0\0\x02\x01s\0\x03\0\0\0i.I\0\0\0\0\0\
        \x03\x01s\0\x01\0\0\0M\0\0\0\0\0\0\0\x06\x01s\0\x01\0\0\0d\0\0\0\0\0\0\0";
    assert_eq!(written.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

#[test]
fn what_is_written_is_read_again() {
    let body = Body::default()
        .with_value(&Value::Uint32(9))
        .with_value(&Value::Text("one".to_owned()))
        .with_value(&Value::Bool(true))
        .with_value(&Value::Text("two".to_owned()));
    let written = call(body.clone()).encode("name");
    let read = Message::decode(&written).expect("a message");
    assert_eq!(read, call(body));
    assert_eq!(read.body.texts(), ["one", "two"]);
}

#[test]
fn what_is_no_message_is_not_read() {
    let written = call(Body::default()).encode("");
    for (at, byte) in
        [(0, b'x'), (3, 2), (15, 0xff), (FIXED_HEADER_SIZE + 2, b'a'), (FIXED_HEADER_SIZE + 4, 0xff)]
    {
        let mut broken = written.clone();
        broken[at] = byte;
        assert!(Message::decode(&broken).is_none(), "byte {at}");
    }
    // A message with an excessive length is not waited for.
    let mut long = written;
    long[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
    assert_eq!(Message::length(&long), None);
}
