use serde_json::json;

use super::*;

#[test]
fn a_server_is_left_over_when_its_clients_have_ended() {
    let roles = json!({"roles": {
        "server": {}, "client": {"needs": {"server": "started"}}, "other": {"needs": {"server": "started"}},
    }});
    let mut lifecycle = Lifecycle::new(&plan(&roles));
    let mut step = |input: Input| {
        lifecycle.step(Duration::ZERO, input);
        lifecycle.left_over().map(|(server, client)| (server.to_owned(), client.to_owned()))
    };
    let succeeded =
        |task| Input::Ended { task, exit: Exit::Code(0), note: None, seen: AttemptFacts::default() };
    assert_eq!(step(Input::Prepared), None);
    for task in 0..3 {
        assert_eq!((step(Input::Created(task)), step(Input::Started(task))), (None, None));
    }
    assert_eq!(step(succeeded(1)), None);
    assert_eq!(step(succeeded(2)), Some(("server".to_owned(), "client".to_owned())));
    assert_eq!(step(succeeded(0)), None);
}

#[test]
fn a_role_whose_end_others_await_serves_none() {
    let mut lifecycle =
        Lifecycle::new(&plan(&json!({"roles": {"a": {}, "b": {"needs": {"a": "succeeded"}}}})));
    lifecycle.step(Duration::ZERO, Input::Prepared);
    assert_eq!(lifecycle.left_over(), None);
}
