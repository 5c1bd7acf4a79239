//! The bridge's address instead of a task's, on what leaves the job's network: one rule of nftables.
//!
//! What takes packets to the host (pasta) answers to one address only. The rule is sent as `nft` would, which need
//! not be installed: `table ip jobc { chain out { type nat hook postrouting priority 100; oifname "uplink0" masquerade
//! } }`.

use std::ffi::CStr;

use jobc_sys::error::Result;
use jobc_sys::netlink::{APPEND, Attributes, Batch, NEW, Netlink};

// linux/netfilter/nfnetlink.h, linux/netfilter/nf_tables.h, linux/netfilter.h.
const NFNL_SUBSYS_NFTABLES: u8 = 10;
const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
const NFNL_MSG_BATCH_END: u16 = 0x11;
const NFT_MSG_NEWTABLE: u8 = 0;
const NFT_MSG_NEWCHAIN: u8 = 3;
const NFT_MSG_NEWRULE: u8 = 6;
const NFPROTO_IPV4: u8 = 2;
const NF_INET_POST_ROUTING: u32 = 4;
/// Where source addresses are changed (`NF_IP_PRI_NAT_SRC`).
const PRIORITY: u32 = 100;
const NFT_REG_1: u32 = 1;
const NFT_META_OIFNAME: u32 = 7;
const NFT_CMP_EQ: u32 = 0;
const TABLE: &CStr = c"jobc";
const CHAIN: &CStr = c"out";

/// Adds the rule for what leaves by an interface of this thread's network namespace.
pub(super) fn masquerade(interface: &str) -> Result<()> {
    let mut batch = Batch::default();
    batch.notify(NFNL_MSG_BATCH_BEGIN, &[0, 0, 0, NFNL_SUBSYS_NFTABLES]);
    let kind = |message: u8| u16::from_be_bytes([NFNL_SUBSYS_NFTABLES, message]);
    // struct nfgenmsg: the family, version 0, no resource.
    let fixed = [NFPROTO_IPV4, 0, 0, 0];
    let what = "set up NAT with nftables";
    batch.request(what, kind(NFT_MSG_NEWTABLE), NEW, &fixed, |table| {
        table.text(1, TABLE);
    });
    batch.request(what, kind(NFT_MSG_NEWCHAIN), NEW, &fixed, |chain| {
        // NFTA_CHAIN_TABLE, _NAME, _HOOK (NFTA_HOOK_HOOKNUM, _PRIORITY), _TYPE.
        chain.text(1, TABLE).text(3, CHAIN);
        chain.nested(4, |hook| {
            hook.big_endian(1, NF_INET_POST_ROUTING).big_endian(2, PRIORITY);
        });
        chain.text(7, c"nat");
    });
    batch.request(what, kind(NFT_MSG_NEWRULE), APPEND, &fixed, |rule| {
        // NFTA_RULE_TABLE, _CHAIN, _EXPRESSIONS.
        rule.text(1, TABLE).text(2, CHAIN).nested(4, |list| {
            expression(list, c"meta", |meta| {
                // NFTA_META_DREG, _KEY.
                meta.big_endian(1, NFT_REG_1).big_endian(2, NFT_META_OIFNAME);
            });
            expression(list, c"cmp", |cmp| {
                // NFTA_CMP_SREG, _OP, _DATA (NFTA_DATA_VALUE): the whole field, padded with NUL bytes.
                cmp.big_endian(1, NFT_REG_1).big_endian(2, NFT_CMP_EQ);
                let mut name = [0_u8; 16];
                name[..interface.len()].copy_from_slice(interface.as_bytes());
                cmp.nested(3, |data| {
                    data.bytes(1, &name);
                });
            });
            expression(list, c"masq", |_| {});
        });
    });
    batch.notify(NFNL_MSG_BATCH_END, &[0, 0, 0, NFNL_SUBSYS_NFTABLES]);
    Netlink::netfilter()?.send(&batch)
}

/// Adds an expression to a rule: NFTA_LIST_ELEM with NFTA_EXPR_NAME and _DATA.
fn expression(list: &mut Attributes<'_>, name: &CStr, data: impl FnOnce(&mut Attributes<'_>)) {
    list.nested(1, |element| {
        element.text(1, name).nested(2, data);
    });
}
