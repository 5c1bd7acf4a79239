//! `EXPOSE`.

/// The ports that a word of `EXPOSE` means, as in an image's configuration: `8080/tcp`. `80-82/udp` means three.
pub fn ports(text: &str) -> Result<Vec<String>, String> {
    // A host address and port, as in `docker run -p`, are ignored in an image.
    let text = text.rsplit_once(':').map_or(text, |(_, port)| port);
    let (range, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let protocol = protocol.to_ascii_lowercase();
    if !["tcp", "udp", "sctp"].contains(&protocol.as_str()) {
        return Err(format!("unknown protocol `{protocol}`: use `tcp`, `udp` or `sctp`"));
    }
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let number = |text: &str| text.parse::<u16>().ok().filter(|n| *n > 0 && !text.starts_with('+'));
    let (Some(first), Some(last)) = (number(first), number(last)) else {
        return Err(format!("invalid port `{range}`: use a number from 1 to 65535"));
    };
    if last < first {
        return Err(format!("invalid port range `{range}`: it ends before it begins"));
    }
    Ok((first..=last).map(|port| format!("{port}/{protocol}")).collect())
}
