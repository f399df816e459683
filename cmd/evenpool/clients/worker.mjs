import http from "node:http";

const socketPath = process.env.EVENPOOL_SOCKET ?? "/run/evenpool/evenpool.sock";

function allocate(pool) {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, method: "POST", path: `/v1/pools/${pool}/allocate`, timeout: 2000 }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("error", reject).on("data", (part) => (text += part)).on("end", () => {
        const answer = JSON.parse(text);
        answer.error ? reject(new Error(answer.error.message)) : resolve(answer);
      });
    });
    request.on("timeout", () => request.destroy(new Error("no answer"))).on("error", reject).end();
  });
}

const { proxy, count } = await allocate("web");
if (proxy) console.log(proxy, count); // else the pool is empty: make no request
