package alloc_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
)

const aclFile = "../systemd/evenpool.acl"

// step is one thing that the daemon does in Redis.
type step struct {
	name string
	do   func(ctx context.Context, store *alloc.Store, pool *alloc.Pool) error
}

// allSteps is all of it, in an order in which each finds what it needs.
func allSteps() []step {
	const e1, e2 = "192.0.2.1:80", "192.0.2.2:80"
	offers := []alloc.Offer{{Endpoint: e1, Record: []byte("{}")}, {Endpoint: e2, Record: []byte("{}")}}
	settle := func(ctx context.Context, pool *alloc.Pool, s alloc.Settlement) error {
		known, err := pool.Look(ctx, e1)
		if err != nil {
			return err
		}
		s.Endpoint, s.Version, s.Record, s.Due = e1, known.Version, []byte("{}"), start
		_, err = pool.Settle(ctx, []alloc.Settlement{s}, alloc.SettlePolicy{Start: "median"})
		return err
	}
	return []step{
		{"ping", func(ctx context.Context, s *alloc.Store, _ *alloc.Pool) error { return s.Ping(ctx) }},
		{"server info", func(ctx context.Context, s *alloc.Store, _ *alloc.Pool) error {
			_, err := s.ServerInfo(ctx)
			return err
		}},
		{"init", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error { _, err := p.Init(ctx); return err }},
		{"meta", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error { _, err := p.Meta(ctx); return err }},
		{"set meta", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			return p.SetMeta(ctx, map[string]string{"a": "b"})
		}},
		{"offer", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, err := p.OfferUpTo(ctx, offers, start, 10)
			return err
		}},
		{"next due", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, _, err := p.NextDue(ctx)
			return err
		}},
		{"claim", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, err := p.Claim(ctx, start, start.Add(time.Minute), 1)
			return err
		}},
		{"claim these", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, err := p.ClaimThese(ctx, []string{e1, e2}, start.Add(time.Hour), start.Add(2*time.Hour))
			return err
		}},
		{"admit", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			return settle(ctx, p, alloc.Settlement{Action: alloc.Admit, Member: "http://" + e1})
		}},
		{"allocate one", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, err := p.Allocate(ctx, 1)
			return err
		}},
		{"allocate some", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, err := p.Allocate(ctx, 3)
			return err
		}},
		{"report", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, err := p.Report(ctx, alloc.Report{Member: "http://" + e1, Endpoint: e1, Outcome: "failed"})
			return err
		}},
		{"reports", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, err := p.Reports(ctx, e1)
			return err
		}},
		{"members", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error { _, err := p.Members(ctx); return err }},
		{"score", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, _, err := p.Score(ctx, "http://"+e1)
			return err
		}},
		{"size", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, _, _, err := p.Size(ctx)
			return err
		}},
		{"evenness", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, err := p.Evenness(ctx)
			return err
		}},
		{"repair", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error { _, err := p.Repair(ctx); return err }},
		{"look", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error { _, err := p.Look(ctx, e1); return err }},
		{"records", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, err := p.Records(ctx, []string{e1})
			return err
		}},
		{"retire", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			return settle(ctx, p, alloc.Settlement{Action: alloc.Retire, Member: "http://" + e1})
		}},
		{"events", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, err := p.Events(ctx, 10)
			return err
		}},
		{"unnamed", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			_, err := p.Unnamed(ctx, time.Now().Add(time.Hour), 0, 10)
			return err
		}},
		{"forget", func(ctx context.Context, _ *alloc.Store, p *alloc.Pool) error {
			list, err := p.UnnamedThese(ctx, []string{e1, e2})
			if err != nil {
				return err
			}
			var forget []alloc.Forgetting
			for _, u := range list {
				forget = append(forget, alloc.Forgetting{Unnamed: u})
			}
			_, _, err = p.Forget(ctx, forget, time.Now(), time.Now().Add(24*time.Hour))
			return err
		}},
	}
}

// failing gives the names of the steps that do not pass, and fails the test where that is for another
// reason than a right.
func failing(t *testing.T, store *alloc.Store) []string {
	t.Helper()
	pool := store.Pool(alloctest.PoolName(t))
	var names []string
	for _, s := range allSteps() {
		err := s.do(t.Context(), store, pool)
		if err == nil {
			continue
		}
		names = append(names, s.name)
		text := err.Error()
		// What comes of a step that was refused is no right of its own.
		if !lacksRight(err) && !strings.Contains(text, alloc.ErrPoolLost.Error()) {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	return names
}

// lacksRight says whether a call failed because the user in Redis may not do what it takes.
func lacksRight(err error) bool {
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

// aclRules gives the user's rules of the file, password aside.
func aclRules(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(aclFile)
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "user evenpool on >PASSWORD "); found {
			rules = append(rules, strings.Fields(rest)...)
		}
	}
	if len(rules) == 0 {
		t.Fatalf("%s has no line of the user", aclFile)
	}
	return rules
}

// aclServer is a server with the file as its users; admin may do everything.
func aclServer(t *testing.T, how string) (server *alloctest.Server, admin *redis.Client) {
	t.Helper()
	text, err := os.ReadFile(aclFile)
	if err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(t.TempDir(), "evenpool.acl")
	withPassword := strings.Replace(string(text), ">PASSWORD", ">"+aclPassword, 1)
	if how == "--aclfile" {
		lines := strings.Split(strings.TrimSpace(withPassword), "\n")
		withPassword = lines[len(lines)-1] + "\n"
	}
	if err := os.WriteFile(users, []byte(withPassword), 0o600); err != nil {
		t.Fatal(err)
	}
	server = alloctest.NewServer(t, how, users)
	admin = redis.NewClient(&redis.Options{Network: "unix", Addr: server.Socket})
	t.Cleanup(func() { admin.Close() })
	return server, admin
}

const aclPassword = "only-here"

func asEvenpool(server *alloctest.Server) alloc.Options {
	return alloc.Options{URL: server.URL + "?db=1", Username: "evenpool", Password: aclPassword}
}

func TestR12_TheDocumentedRightsAreEnough(t *testing.T) {
	for _, how := range []string{"--include", "--aclfile"} {
		t.Run(how, func(t *testing.T) {
			server, _ := aclServer(t, how)
			if names := failing(t, open(t, asEvenpool(server))); len(names) > 0 {
				t.Errorf("with the rights of %s, these are refused: %v", aclFile, names)
			}
		})
	}
}

// None of the rights is there in vain: without it, something is refused.
func TestR12_EachRightIsNeeded(t *testing.T) {
	server, admin := aclServer(t, "--include")
	rules := aclRules(t)
	for _, rule := range rules {
		t.Run(rule, func(t *testing.T) {
			without := slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return r == rule })
			set := []any{"ACL", "SETUSER", "evenpool", "reset", "on", ">" + aclPassword}
			for _, r := range without {
				set = append(set, r)
			}
			if err := admin.Do(t.Context(), set...).Err(); err != nil {
				t.Fatal(err)
			}
			// What it ran before, the server would know by its hash.
			if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			names := failing(t, open(t, asEvenpool(server)))
			if len(names) == 0 {
				t.Errorf("%s has %s, and all works without it", aclFile, rule)
			}
			t.Logf("without %s: %s", rule, strings.Join(names, ", "))
		})
	}
}
