package daemon

import "testing"

func TestRedactURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.org/http.txt":                    "https://example.org/http.txt",
		"https://me:hunter2@example.org/?key=hunter2#top": "https://***@example.org/?***",
		"https://hunter2@example.org/":                    "https://***@example.org/",
		"rediss://redis.example.org:6380/3":               "rediss://redis.example.org:6380/3",
		"unix:///run/redis.sock?db=2":                     "unix:///run/redis.sock?db=2",
		"file:///etc/evenpool/own.txt":                    "file:///etc/evenpool/own.txt",
		"":                                                "",
		"http://[hunter2":                                 "",
	} {
		if got := redactURL(text); got != want {
			t.Errorf("%s is shown as %q, want %q", text, got, want)
		}
	}
}
