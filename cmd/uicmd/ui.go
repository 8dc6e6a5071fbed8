// Package uicmd has the commands that show the page in a browser: of a folder of this machine, and of a cluster.
package uicmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/experiment/served"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/page"
)

// UICmd is `coppice ui`.
type UICmd struct {
	Folder    string `arg:"" optional:"" default:"." help:"Folder with experiments (from experiment run --local) and model files (from train --local), also in folders below it (default: the current folder)."`
	Port      int    `name:"page-port" placeholder:"N" help:"Port of this machine on which the page is served (default: a free port)."`
	NoBrowser bool   `help:"Do not open the page in a browser; only print its address."`
}

// pageAt is where a page is.
type pageAt struct {
	URL    string `json:"url"`
	Folder string `json:"folder,omitempty"` // that it shows; empty: it shows a cluster
}

// The bounds of the server. A stream of changes has no end.
const (
	headerWithin = 10 * time.Second
	idleFor      = 2 * time.Minute
	maxHeader    = 64 << 10
	endWithin    = time.Second
)

// Run implements `coppice ui`.
func (c *UICmd) Run(a *cli.App) error {
	if c.Port < 0 || c.Port > 65535 {
		return cli.Usagef("{page-port=%d}: want 1 to 65535, or 0 for a free port", c.Port)
	}
	folder, err := served.Open(c.Folder)
	if err != nil {
		return err
	}
	defer folder.Close()
	l, err := new(net.ListenConfig).Listen(a.Ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return errtext.Errorf(errtext.WrongRequest, "port %d of this machine is in use; give another {page-port}, or leave "+
			"it out for a free port", c.Port)
	}
	if err != nil {
		return err
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(a.Ctx)
	defer cancel()
	mux := http.NewServeMux()
	mux.Handle("/v1/", folder)
	mux.Handle("/{$}", http.RedirectHandler(page.Root, http.StatusSeeOther))
	mux.Handle("/", page.Handler(page.Config{API: folder, Folder: folder.Dir(),
		Log: slog.New(slog.DiscardHandler)}))
	in := newEntry(l)
	server := &http.Server{Handler: guard(in.protect(mux)), ReadHeaderTimeout: headerWithin, IdleTimeout: idleFor,
		MaxHeaderBytes: maxHeader, BaseContext: func(net.Listener) context.Context { return ctx }}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	shown := pageAt{in.address(l, in.token), folder.Dir()}
	err = a.Print(shown, func(w io.Writer) { fmt.Fprintln(w, shown.URL) })
	if err == nil {
		a.Note("the page shows %s until an interrupt (Ctrl-C)", folder.Dir())
		if !c.NoBrowser {
			openOrSay(a, in.address(l, in.once), shown.URL)
		}
		select {
		case <-a.Ctx.Done():
		case err = <-failed:
		}
	}
	cancel() // streams end
	ending, stop := context.WithTimeout(context.Background(), endWithin)
	defer stop()
	if server.Shutdown(ending) != nil {
		server.Close()
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// guard refuses requests that change something, and requests for another host than this machine: the name of a page
// elsewhere may lead to this machine, so that its scripts could read the answers.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isLoopback(r.Host):
			http.Error(w, fmt.Sprintf("the request is for the host %.80q, which is not a loopback address", r.Host),
				http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the page of a folder changes nothing", http.StatusMethodNotAllowed)
		default:
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
			next.ServeHTTP(w, r)
		}
	})
}

// isLoopback reports whether the host of a request is this machine, whatever a name server says.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
