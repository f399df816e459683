package alloctest

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
	tcredis "github.com/testcontainers/testcontainers-go/modules/redis"
)

// localImage is what .ci/redis-image.sh makes. No registry has it.
const localImage = "evenpool-test-redis:local"

// startContainer starts a Redis in a container. testcontainers-go panics where it finds no engine.
func startContainer() (server found, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("no Docker engine: %.200v", r)
		}
	}()
	// No reaper: its image would have to be pulled. The container is ended by whoever started it.
	setDefault("TESTCONTAINERS_RYUK_DISABLED", "true")
	// The published port is on loopback; in a container, the bridge's gateway would be asked.
	setDefault("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()

	quiet := log.New(io.Discard, "", 0)
	tclog.SetDefault(quiet)
	image := os.Getenv(envImage)
	if image == "" {
		image = localImage
	}
	if image == localImage {
		if err := imageIsHere(ctx, image); err != nil {
			return found{}, err
		}
	}
	container, err := tcredis.Run(ctx, image, testcontainers.WithLogger(quiet))
	stop := func() { testcontainers.TerminateContainer(container) }
	if err != nil {
		stop()
		return found{}, fmt.Errorf("image %s: %w", image, err)
	}
	url, err := container.ConnectionString(ctx)
	if err != nil {
		stop()
		return found{}, err
	}
	return found{url: url, how: "a container of " + image, stop: stop}, nil
}

func imageIsHere(ctx context.Context, image string) error {
	client, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.ImageInspect(ctx, image); err != nil {
		return fmt.Errorf("image %s is not here (make it with .ci/redis-image.sh): %w", image, err)
	}
	return nil
}

func setDefault(name, value string) {
	if os.Getenv(name) == "" {
		os.Setenv(name, value)
	}
}
