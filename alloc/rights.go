package alloc

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// LacksRight says whether a call failed because the user in Redis may not do what it takes.
// systemd/evenpool.acl lists what evenpool needs. Of a script, some commands may have run.
func LacksRight(err error) bool {
	var replied redis.Error
	if !errors.As(err, &replied) {
		return false
	}
	text := replied.Error()
	for _, says := range []string{
		"NOPERM",                         // a command that was sent
		"The user executing the script ", // one of a script: until 7.0
		"ACL failure in script",          // since 7.2, and in Valkey
		"has no permissions to ",         // what follows these words where a server puts others before
	} {
		if strings.Contains(text, says) {
			return true
		}
	}
	return false
}
