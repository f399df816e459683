package api_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"evenpool/daemon/api"
)

// A worker takes a proxy for each request, and waits as it is told when there is
// none.
func ExampleClient() {
	var daemon api.Client // finds the socket by itself
	defer daemon.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	one, err := daemon.Allocate(ctx, "web")
	if e := (*api.Error)(nil); errors.As(err, &e) && e.Code.Retryable() {
		log.Printf("ask again in %s: %s", e.RetryAfter, e.Message)
		return
	}
	if err != nil {
		log.Print(err)
		return
	}
	if one.Proxy == nil {
		log.Printf("no proxy is eligible now, ask again in %d ms; do not go without one", one.RetryAfterMS)
		return
	}
	fmt.Printf("use %s, handed out %d times so far\n", *one.Proxy, one.Count)
}

func ExampleClient_AllocateMany() {
	daemon := api.Client{Socket: "/run/evenpool/evenpool.sock"}
	defer daemon.Close()

	many, err := daemon.AllocateMany(context.Background(), "", 10) // "" is the only pool
	if err != nil {
		log.Print(err)
		return
	}
	for _, a := range many.Proxies {
		fmt.Println(a.Proxy)
	}
}
