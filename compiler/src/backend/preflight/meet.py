def line(peer):
    # The other end closes the connection when it gives up.
    return json.loads(peer.makefile("r").readline() or "null")

def send(peer, value):
    peer.sendall((json.dumps(value) + "\n").encode())

# The tasks meet at the port of the rendezvous. The first one closes it before it lets them go, so that the command can
# use it. They learn how their clocks differ from its clock, and a free port of it.
def meet(address, port, rank, tasks, processes, seconds):
    until = time.monotonic() + seconds
    if rank == 0:
        try:
            both = socket.has_dualstack_ipv6()
            family = socket.AF_INET6 if both else socket.AF_INET
            server = socket.create_server(("", port), family=family, backlog=tasks, dualstack_ipv6=both)
        except OSError as error:
            end(86, "port %d cannot be used: %s" % (port, error.strerror))
        peers = {}
        while len(peers) < tasks - 1:
            server.settimeout(max(until - time.monotonic(), 0.01))
            try:
                peer = server.accept()[0]
                peer.settimeout(30)
                hello = line(peer)
                peers[hello["rank"]] = (peer, hello["processes"])
            except (TimeoutError, socket.timeout):
                missing = sorted(set(range(1, tasks)) - set(peers))
                names = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
                end(86, "rank %s did not reach port %d within %d s" % (names, port, seconds))
            except (OSError, TypeError, ValueError, KeyError):
                continue
        server.close()
        free = socket.socket()
        free.bind(("", 0))
        base, answers = processes, []
        for number in sorted(peers):
            peer, own = peers[number]
            try:
                sent = time.time()
                send(peer, "clock")
                there = line(peer)
                skew = there - (sent + time.time()) / 2
            except (OSError, TypeError, ValueError):
                end(86, "rank %d is gone" % number)
            answers.append((peer, {"base": base, "skew": skew}))
            base += own
        chosen = free.getsockname()[1]
        free.close()
        for peer, answer in answers:
            send(peer, dict(answer, world=base, port=chosen))
        # Who closes a connection first cannot use its port for a while.
        for peer, _ in answers:
            try:
                peer.settimeout(5)
                peer.recv(1)
            except OSError:
                pass
        return {"base": 0, "skew": 0.0, "world": base, "port": chosen}
    error = None
    while time.monotonic() < until:
        try:
            peer = socket.create_connection((address, port), timeout=5)
            peer.settimeout(seconds + 30)
            send(peer, {"rank": rank, "processes": processes})
            if line(peer) == "clock":
                send(peer, time.time())
                answer = line(peer)
                if answer:
                    return answer
            error = "it has closed the connection"
        except (OSError, ValueError) as failed:
            error = getattr(failed, "strerror", None) or str(failed)
        time.sleep(0.2)
    end(86, "%s:%d is not reachable within %d s: %s" % (address, port, seconds, error))

if check == "network":
    port, rank, tasks, processes, seconds = map(int, numbers[1:])
    place = meet(numbers[0], port, rank, tasks, processes, seconds)
    note("%d tasks meet at port %d" % (tasks, port))
    print(json.dumps(place))
if check == "clock":
    skew, most = json.loads(numbers[0])["skew"], float(numbers[1])
    if abs(skew) > most:
        side = "ahead of" if skew > 0 else "behind"
        end(86, f"{abs(skew):.3f} s {side} that of the first task, {most:g} s allowed")
    note("%+.3f s from the first task" % skew)

