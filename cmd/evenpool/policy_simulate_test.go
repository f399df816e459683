package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
	"evenpool/alloc/simulate"
)

// The published example is what the command prints and draws, to the letter.
func TestPolicySimulateExample(t *testing.T) {
	const command = "evenpool policy simulate --hours 1 --svg policy-simulate.svg"
	picture := filepath.Join(t.TempDir(), "policy-simulate.svg")
	args := strings.Fields(strings.Replace(command, "policy-simulate.svg", picture, 1))
	code, stdout, stderr := runCLI(t, args[1:]...)
	if code != exitDone || stderr != "" {
		t.Fatalf("exit %d, stderr %s", code, stderr)
	}
	for file, got := range map[string]string{"policy-simulate.txt": stdout, "policy-simulate.svg": read(t, picture)} {
		if want := read(t, filepath.Join("testdata", file)); got != want {
			t.Errorf("testdata/%s is not what it would be now; make it again by %q there, its output into policy-simulate.txt\n%s", file, command, got)
		}
	}
	begin, end := "<!-- "+command+" -->\n", "<!-- end of "+command+" -->\n"
	_, rest, _ := strings.Cut(readme(t), begin)
	block, _, _ := strings.Cut(rest, end)
	if want := "```\n" + stdout + "```"; strings.TrimSpace(block) != want {
		t.Errorf("between %q and %q README is to have\n%s", begin, end, want)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPolicySimulateJSONAndPicture(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "p.svg")
	code, stdout, stderr := runCLI(t, "policy", "simulate", "--hours", "0.2", "--members", "10", "--hour-survival", "0.01", "--rate", "120/m",
		"--policy", "0/zero", "--policy", "max/keep", "--settle-every", "20s", "--svg", picture, "-o", "json")
	if code != exitDone || stderr != "" {
		t.Fatalf("exit %d, stderr %s", code, stderr)
	}
	// The names are what programs know.
	var got struct {
		Model struct {
			Members      int     `json:"members"`
			HourSurvival float64 `json:"hour_survival"`
			Returning    float64 `json:"returning"`
			AwayS        float64 `json:"away_s"`
			Seed         int     `json:"seed"`
		} `json:"model"`
		Hours        float64 `json:"hours"`
		Members      int     `json:"members"`
		Came         int     `json:"came"`
		Went         int     `json:"went"`
		RatePerS     float64 `json:"rate_per_s"`
		WindowS      float64 `json:"window_s"`
		SettleEveryS float64 `json:"settle_every_s"`
		Policies     []struct {
			Start        string  `json:"start"`
			Restore      string  `json:"restore"`
			Allocations  int64   `json:"allocations"`
			Unserved     int64   `json:"unserved"`
			LargestShare float64 `json:"largest_share"`
			LongestRun   int64   `json:"longest_run"`
			MaxSpread    int64   `json:"max_spread"`
			MeanSpread   float64 `json:"mean_spread"`
			MaxGini      float64 `json:"max_gini"`
			MeanGini     float64 `json:"mean_gini"`
			PointWindows int     `json:"point_windows"`
			OverTime     []struct {
				Share  float64 `json:"share"`
				Run    int64   `json:"run"`
				Spread int64   `json:"spread"`
				Gini   float64 `json:"gini"`
			} `json:"over_time"`
		} `json:"policies"`
	}
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	if got.Model.Members != 10 || got.Model.AwayS != 3600 || got.Hours != 0.2 || got.Came < 5 || got.Went < 5 || got.RatePerS != 2 || got.WindowS != 60 || got.SettleEveryS != 20 {
		t.Errorf("got %+v", got)
	}
	if len(got.Policies) != 2 || got.Policies[1].Start != "max" || got.Policies[1].Restore != "keep" {
		t.Fatalf("the policies are %+v", got.Policies)
	}
	p := got.Policies[0]
	if p.Allocations != 1440 || p.LongestRun < 2 || p.LargestShare <= 0.1 || p.MaxSpread < 2 || p.MaxGini <= 0 || len(p.OverTime) != 12 || p.PointWindows != 1 {
		t.Errorf("0/zero is %+v", p)
	}
	var text strings.Builder
	for decoder := xml.NewDecoder(strings.NewReader(read(t, picture))); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the picture: %v", err)
		}
		if data, ok := token.(xml.CharData); ok {
			text.Write(data)
		}
	}
	for _, want := range []string{"start 0", "restore zero", "restore keep", fmt.Sprintf("at most %d in a row", p.LongestRun), "hours", "logarithmic", "prefers-color-scheme: dark"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
}

// A pool's own events are read from Redis, and from what an embedded store has saved while the store
// is another's.
func TestPolicySimulateEvents(t *testing.T) {
	for _, kind := range []struct {
		name    string
		options alloc.Options
	}{{"redis", alloctest.Redis(t)}, {"embedded", alloctest.Embedded(t)}} {
		t.Run(kind.name, func(t *testing.T) {
			options := kind.options
			pool := alloctest.PoolName(t)
			now := time.Now()
			options.Now = func() time.Time { return now }
			store, err := alloc.Open(options)
			if err != nil {
				t.Fatal(err)
			}
			p := store.Pool(pool)
			if _, err := p.Init(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, step := range []struct {
				ago    time.Duration
				action alloc.Action
				who    string
			}{{30 * time.Hour, alloc.Admit, "a"}, {20 * time.Hour, alloc.Admit, "b"}, {10 * time.Hour, alloc.Retire, "a"}, {9 * time.Hour, alloc.Admit, "a"}} {
				now = time.Now().Add(-step.ago)
				s := []alloc.Settlement{{Endpoint: step.who, Member: "http://user:hunter2@" + step.who, Action: step.action}}
				if _, err := p.Settle(t.Context(), s, alloc.SettlePolicy{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			where := fmt.Sprintf("redis: {url: %q}\n", options.URL)
			if options.URL == "" {
				where = fmt.Sprintf("state_dir: %q\n", options.StateDir)
				if store, err = alloc.Open(options); err != nil { // as a daemon has it
					t.Fatal(err)
				}
				defer store.Close()
			}
			file := writeFile(t, where+strings.Replace(policyFile, "name: web", "name: "+pool, 1))

			code, stdout, stderr := runCLI(t, "policy", "simulate", "-c", file, "--last", "24h", "--rate", "0.1/s", "--policy", "min/floor", "-o", "json")
			if code != exitDone || stderr != "" {
				t.Fatalf("exit %d, stderr %s", code, stderr)
			}
			var got simulation
			if err := json.Unmarshal([]byte(stdout), &got); err != nil {
				t.Fatal(err)
			}
			if got.Events == nil || got.Model != nil || got.Events.Pool != pool || got.Hours != 24 || got.Members != 1 || got.Came != 2 || got.Went != 1 || got.Results[0].Allocations != 8640 {
				t.Errorf("got %+v", got)
			}
			// Further back than it goes.
			code, stdout, stderr = runCLI(t, "policy", "simulate", "-c", file, "--pool", pool, "--last", "720h", "--rate", "0.1/s", "--policy", "min/floor")
			if code != exitDone || !strings.HasPrefix(stdout, "pool "+pool+": 0 members, 1 went and 3 came in 30 h, ") ||
				!strings.HasPrefix(stderr, "the events of pool "+pool+" begin at ") || strings.Contains(stdout+stderr, "hunter2") {
				t.Errorf("exit %d\n%s%s", code, stderr, stdout)
			}
			// Where nothing happened.
			code, _, stderr = runCLI(t, "policy", "simulate", "-c", file, "--last", "8h")
			if code != exitFailed || !strings.HasSuffix(stderr, ": nobody came or went; take a longer --last, or leave it out for a model\n") {
				t.Errorf("exit %d, stderr %s", code, stderr)
			}
		})
	}
}

func TestPolicySimulateUsage(t *testing.T) {
	two := writeFile(t, policyFile+"  - name: mail\n    probe: {schedule: \"*/30 * * * *\"}\n")
	away := writeFile(t, "redis: {url: \"unix:///nonexistent/redis.sock\"}\n"+policyFile)
	fresh := writeFile(t, "state_dir: "+t.TempDir()+"\n"+policyFile)
	for _, tc := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"now", exitUsage, `policy simulate takes no arguments, and got "now"`},
		{"--rate 50", exitUsage, "--rate 50: want a number for each s, m or h, such as 50/s"},
		{"--rate 0/s", exitUsage, "--rate 0/s: want a number for each s, m or h, such as 50/s"},
		{"--rate 1e12/s", exitUsage, "21600000000000000 allocations: want at most 1000000000; lower the rate, or shorten the time"},
		{"--policy min", exitUsage, "--policy min: want START/RESTORE, such as min/floor"},
		{"--policy floor/min", exitUsage, `--policy floor/min: "floor" is no start policy; write a whole number, min, median, max or zero`},
		{"--hours NaN", exitUsage, "--hours NaN: want more than 0 and at most 10000"},
		{"--members 2001", exitUsage, "2001 members: want 1 to 2000"},
		{"--window 7h", exitUsage, "a window of 7h0m0s is longer than the whole time, 6h0m0s"},
		{"--last 24h --seed 3", exitUsage, "--seed is of the model, and --last plays a pool's own events: leave out one of them"},
		{"--pool web", exitUsage, "--pool is for a pool's own events: add --last, such as --last 24h"},
		{"--last -1h -c " + two, exitUsage, "--last -1h0m0s: want more than 0, such as 24h"},
		{"--last 24h -c " + two, exitUsage, "there are 2 pools: name one by --pool"},
		{"--last 24h --pool wbe -c " + two, exitUsage, "--pool wbe: the configuration has no such pool"},
		{"--last 24h -c " + fresh, exitFailed, "pool web has neither members nor events: has its daemon run yet?"},
		{"--last 24h -c " + away, exitUnavailable, "members of pool web: store unavailable: dial unix /nonexistent/redis.sock: connect: no such file or directory"},
		{"--svg /nonexistent/p.svg", exitFailed, "--svg: open /nonexistent/p.svg: no such file or directory"},
	} {
		code, stdout, stderr := runCLI(t, append([]string{"policy", "simulate"}, strings.Fields(tc.args)...)...)
		if code != tc.code || stdout != "" || stderr != "evenpool: "+tc.stderr+"\n" {
			t.Errorf("%s: exit %d, stdout %q, stderr\n%swant %d\n%s", tc.args, code, stdout, stderr, tc.code, tc.stderr)
		}
	}
}

func TestBlocks(t *testing.T) {
	points := []simulate.Point{{Run: 0}, {Run: 1}, {Run: 10}, {Run: 100}, {Run: 1000}}
	if got := blocks(points, 1000); got != "▁▁▃▆█" {
		t.Errorf("got %s", got)
	}
	if got := blocks(points[:2], 1); got != "▁▁" {
		t.Errorf("a flat one: got %s", got)
	}
	for s, want := range map[float64]string{60: "1m", 3600: "1h", 5400: "1h30m", 15: "15s", 61: "1m1s", 0.5: "500ms"} {
		if got := seconds(s); got != want {
			t.Errorf("%g s is %s, want %s", s, got, want)
		}
	}
}
