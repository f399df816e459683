import http.client, json, os, socket

class Daemon(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.environ.get("EVENPOOL_SOCKET", "/run/evenpool/evenpool.sock"))

daemon = Daemon("evenpool", timeout=2)
daemon.request("POST", "/v1/pools/web/allocate")
answer = json.load(daemon.getresponse())
if "error" in answer:
    raise SystemExit(answer["error"]["message"])
if answer["proxy"]:  # else the pool is empty: make no request
    print(answer["proxy"], answer["count"])
