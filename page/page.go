// Package page is a placeholder.
package page

import (
	"net/http"
)

type Config struct {
	API    http.Handler
	Prefix string
}

func New(cfg Config) http.Handler {
	mux := http.NewServeMux()
	l := login{cfg.Prefix}
	mux.HandleFunc("GET /ui/login", l.ask)
	mux.HandleFunc("POST /ui/login", l.exchange)
	mux.HandleFunc("POST /ui/logout", l.leave)
	return mux
}
