package clustercmd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/worker"
)

// ServeFlags are the common flags of coordinators and workers.
type ServeFlags struct {
	LogLevel     string   `enum:"debug,info,warn,error" default:"info" help:"Lowest level of the messages in the log on stderr: debug, info, warn or error. With -o json the log is in JSON."`
	Insecure     bool     `help:"Listen at addresses that other machines reach without TLS. Anybody who reaches the ports can then read, change and delete everything."`
	OpenMetrics  bool     `name:"anonymous-metrics" help:"Anybody who reaches the HTTP port may read /metrics. Otherwise a reader needs a certificate or a token of the role read."`
	AllowHost    []string `name:"allow-host" placeholder:"NAME" help:"Names with a dot by which HTTP is reached in the clear, separated by commas. Requests for other names are refused; addresses, names without a dot and the hosts of --peers are always accepted."`
	DieWithStdin bool     `hidden:"" help:"Stop when stdin closes, for a process that another process started."`

	connect.TLSFlag
}

// Certificates opens the certificates of a service. Without a folder it returns nil.
func (s *ServeFlags) Certificates(v *Service) (*certs.Source, error) {
	if s.Insecure && s.TLSDir != "" {
		return nil, cli.Usagef("--insecure and --tls-dir exclude each other: with certificates, every connection is encrypted")
	}
	if s.TLSDir == "" {
		return nil, nil
	}
	source, err := certs.Open(s.TLSDir, v.log)
	if err != nil {
		return nil, cli.Usagef("{tls-dir}: %w", err)
	}
	return source, nil
}

// Service is the run of a coordinator or a worker: its context and its log.
type Service struct {
	Ctx     context.Context
	log     *slog.Logger
	Cancel  context.CancelCauseFunc
	handler *serviceLog
}

// errStdin is the cause of a context that ended because stdin was closed.
var errStdin = errors.New("stdin was closed")

// Start begins a service. With -o json its log is in JSON.
func (s *ServeFlags) Start(a *cli.App) *Service {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		panic("coppice: log level " + s.LogLevel + " passed the parser")
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(a.Stderr, options)
	if a.JSON {
		handler = slog.NewJSONHandler(printable.NewJSONWriter(printable.Unwrap(a.Stderr)), options)
	}
	v := &Service{handler: newServiceLog(handler, level > slog.LevelDebug)}
	v.log = slog.New(v.handler)
	v.Ctx, v.Cancel = context.WithCancelCause(a.Ctx)
	if s.DieWithStdin {
		go func() {
			io.Copy(io.Discard, a.Stdin)
			v.Cancel(errStdin)
		}()
	}
	cli.KeepPrivate(a.Ctx)
	had := hasTerminal()
	cli.OnHangup(a.Ctx, func() bool {
		if had && !hasTerminal() {
			return false
		}
		v.log.Info("SIGHUP is ignored: there is nothing to reload")
		return true
	})
	return v
}

// hasTerminal reports whether this process has a controlling terminal.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err == nil {
		tty.Close()
	}
	return err == nil
}

// ended writes the last line of the log, which says why the service ended, and returns the error of its command. what
// names the service. To be told to stop is no error.
func (v *Service) ended(what string, err error) error {
	defer v.Cancel(nil)
	if errors.Is(err, coordinator.ErrUsage) || errors.Is(err, worker.ErrConfig) {
		return cli.Usage(err)
	}
	text, cause := "the "+what+" ends", context.Cause(v.Ctx)
	if cause == nil || err != nil && !errors.Is(err, context.Canceled) {
		v.handler.end(slog.LevelError, text, "error", err)
		return err
	}
	reason := cause.Error()
	var by cli.Signalled
	if errors.As(cause, &by) {
		reason = "received " + unix.SignalName(by.Signal)
	}
	v.handler.end(slog.LevelInfo, text, "reason", reason)
	return nil
}

// A service writes at most warnLines warnings with the same text in warnEvery, so that the log does not fill a disk.
const (
	warnLines = 20
	warnEvery = time.Minute
	warnTexts = 1024 // texts that are counted at a time
)

// serviceLog is the handler of a service's log. It counts warnings instead of writing too many. After the last line it
// writes nothing, though goroutines of libraries may outlive the service.
type serviceLog struct {
	slog.Handler
	*logState
}

// logState is shared by all handlers of a log.
type logState struct {
	warnings *warnCounts // nil if all warnings are written

	mu    sync.RWMutex
	ended bool
}

func newServiceLog(h slog.Handler, bounded bool) *serviceLog {
	l := &serviceLog{h, &logState{}}
	if bounded {
		l.warnings = &warnCounts{texts: make(map[string]*warnCount)}
	}
	return l
}

// Handle implements slog.Handler.
func (l *serviceLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && l.warnings != nil {
		written, omitted := l.warnings.add(r.Message, r.Time)
		if !written {
			return nil
		}
		r = r.Clone()
		if omitted > 0 {
			r.AddAttrs(slog.Int("omitted_before", omitted))
		}
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.ended {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l *serviceLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &serviceLog{l.Handler.WithAttrs(attrs), l.logState}
}

// WithGroup implements slog.Handler.
func (l *serviceLog) WithGroup(name string) slog.Handler {
	return &serviceLog{l.Handler.WithGroup(name), l.logState}
}

// end writes the last line.
func (l *serviceLog) end(level slog.Level, text string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slog.New(l.Handler).Log(context.Background(), level, text, args...)
	l.ended = true
}

// warnCounts counts warnings by their texts.
type warnCounts struct {
	mu    sync.Mutex
	texts map[string]*warnCount
}

// warnCount counts the warnings with one text.
type warnCount struct {
	since            time.Time
	written, omitted int
}

// add counts a warning. It returns whether to write the warning, and how many with the same text were omitted before.
func (c *warnCounts) add(text string, at time.Time) (written bool, omitted int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.texts[text]
	switch {
	case w == nil && len(c.texts) >= warnTexts:
		clear(c.texts)
		fallthrough
	case w == nil:
		w = &warnCount{since: at}
		c.texts[text] = w
	case at.Sub(w.since) >= warnEvery:
		omitted, *w = w.omitted, warnCount{since: at}
	}
	if w.written >= warnLines {
		w.omitted++
		return false, 0
	}
	w.written++
	return true, omitted
}
