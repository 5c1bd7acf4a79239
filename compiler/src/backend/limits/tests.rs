use super::*;

#[test]
fn cpu_is_exact_to_a_thousandth() {
    let check = |millis: u64, quota: u64, period: u64, shares: u64, weight: u64| {
        let cpu = CpuLimit::of(millis);
        assert_eq!(
            (cpu.quota, cpu.period, cpu.shares, cpu.weight()),
            (quota, period, shares, weight),
            "{millis}"
        );
    };
    check(8000, 800_000, 100_000, 8192, 313);
    check(1000, 100_000, 100_000, 1024, 39);
    check(500, 50_000, 100_000, 512, 20);
    // A quota below 1,000 is refused by the kernel.
    check(10, 1_000, 100_000, 10, 1);
    check(9, 9_000, 1_000_000, 9, 1);
    check(1, 1_000, 1_000_000, 2, 1);
    check(1_000_000, 100_000_000, 100_000, 262_144, 10_000);
}

#[test]
fn weights_of_disk_traffic_meet_at_the_ends() {
    assert_eq!([10, 100, 500, 1000].map(|weight| IoWeight(weight).v2()), [1, 910, 4950, 10_000]);
}

#[test]
fn lists_are_read_as_the_kernel_does() {
    for good in ["0", "0-7", "0-3,8,10-11"] {
        assert_eq!(check_list(good), Ok(()), "{good}");
    }
    let check = |list: &str, part: &str| {
        let why = check_list(list).unwrap_err().to_string();
        assert!(why.contains(part), "{list}: {why}");
    };
    check("7-0", "write `0-7`");
    check("0-99999", "below 65536");
    check("0,", "`` is neither");
    check("0 - 3", "`0 - 3` is neither");
}
