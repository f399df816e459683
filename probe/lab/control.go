package lab

import (
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// Row is a proxy as it is shown to people and programs: the password is hidden.
type Row struct {
	Name      string    `json:"name"`
	Behaviour Behaviour `json:"behaviour"`
	URL       string    `json:"url"`
	Claimed   string    `json:"claimed"`
	Failing   bool      `json:"failing"`
	Truth
}

// Rows returns the lab's table, in the order of Proxies.
func (l *Lab) Rows() []Row {
	rows := make([]Row, 0, len(l.proxies))
	for _, p := range l.Proxies() {
		rows = append(rows, Row{
			Name:      p.Name,
			Behaviour: p.Behaviour,
			URL:       p.URL.Redacted(),
			Claimed:   string(p.Claimed),
			Failing:   p.Failing,
			Truth:     p.Truth,
		})
	}
	return rows
}

// Handler steers the lab from another process:
//
//	GET  /                      the Rows as JSON
//	GET  /list                  ListText: a source's URL
//	POST /proxies/NAME/fail     SetFailing; 204, or 404 for an unknown name
//	POST /proxies/NAME/recover
func (l *Lab) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		enc.Encode(l.Rows())
	})
	mux.HandleFunc("GET /list", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, l.ListText())
	})
	set := func(failing bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := l.SetFailing(r.PathValue("name"), failing); err != nil {
				http.Error(w, err.Error(), http.StatusNotFound)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		}
	}
	mux.HandleFunc("POST /proxies/{name}/fail", set(true))
	mux.HandleFunc("POST /proxies/{name}/recover", set(false))
	return mux
}

// ControlServer serves Handler with the bounds that a server needs.
func (l *Lab) ControlServer() *http.Server {
	return &http.Server{
		Handler:           l.Handler(),
		ReadHeaderTimeout: 2 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    4 << 10,
	}
}
