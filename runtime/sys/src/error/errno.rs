//! Names of error numbers (errno(3)), which neither the standard library nor rustix provides.

use rustix::io::Errno;

/// The name of an error number, such as `ENOENT`.
pub(super) fn name(errno: Errno) -> Option<&'static str> {
    NAMES.iter().find(|(number, _)| *number == errno).map(|(_, name)| *name)
}

macro_rules! names {
    ($($name:ident)*) => {
        &[(Errno::TOOBIG, "E2BIG"), (Errno::ACCESS, "EACCES"), $((Errno::$name, concat!("E", stringify!($name)))),*]
    };
}

/// Every error number of errno-base.h and errno.h.
#[rustfmt::skip]
const NAMES: &[(Errno, &str)] = names! {
    ADDRINUSE ADDRNOTAVAIL ADV AFNOSUPPORT AGAIN ALREADY BADE BADF BADFD BADMSG BADR BADRQC BADSLT BFONT BUSY
    CANCELED CHILD CHRNG COMM CONNABORTED CONNREFUSED CONNRESET DEADLK DESTADDRREQ DOM DOTDOT DQUOT EXIST FAULT FBIG
    HOSTDOWN HOSTUNREACH HWPOISON IDRM ILSEQ INPROGRESS INTR INVAL IO ISCONN ISDIR ISNAM KEYEXPIRED KEYREJECTED
    KEYREVOKED L2HLT L2NSYNC L3HLT L3RST LIBACC LIBBAD LIBEXEC LIBMAX LIBSCN LNRNG LOOP MEDIUMTYPE MFILE MLINK MSGSIZE
    MULTIHOP NAMETOOLONG NAVAIL NETDOWN NETRESET NETUNREACH NFILE NOANO NOBUFS NOCSI NODATA NODEV NOENT NOEXEC NOKEY
    NOLCK NOLINK NOMEDIUM NOMEM NOMSG NONET NOPKG NOPROTOOPT NOSPC NOSR NOSTR NOSYS NOTBLK NOTCONN NOTDIR NOTEMPTY
    NOTNAM NOTRECOVERABLE NOTSOCK NOTTY NOTUNIQ NXIO OPNOTSUPP OVERFLOW OWNERDEAD PERM PFNOSUPPORT PIPE PROTO
    PROTONOSUPPORT PROTOTYPE RANGE REMCHG REMOTE REMOTEIO RESTART RFKILL ROFS SHUTDOWN SOCKTNOSUPPORT SPIPE SRCH SRMNT
    STALE STRPIPE TIME TIMEDOUT TOOMANYREFS TXTBSY UCLEAN UNATCH USERS XDEV XFULL
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_name() {
        // Linux leaves two out: those of EWOULDBLOCK and EDEADLOCK, which are EAGAIN and EDEADLK.
        for number in (1..=133).filter(|number| ![41, 58].contains(number)) {
            let name = name(Errno::from_raw_os_error(number));
            assert!(name.is_some(), "{number} has a name");
        }
        assert_eq!(name(Errno::ACCESS), Some("EACCES"));
        assert_eq!(name(Errno::AGAIN), Some("EAGAIN"));
        assert_eq!(name(Errno::from_raw_os_error(41)), None);
    }
}
