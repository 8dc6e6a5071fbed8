package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/worker"
)

// serveFlags are common to the processes of a cluster.
type serveFlags struct {
	LogLevel     string `enum:"debug,info,warn,error" default:"info" help:"Lowest level of the messages in the log on stderr: debug, info, warn or error. With -o json the log is in JSON."`
	DieWithStdin bool   `hidden:"" help:"Stop when stdin closes, for a process that another process started."`
}

// service is the run of a coordinator or a worker: its context and its log.
type service struct {
	ctx    context.Context
	log    *slog.Logger
	cancel context.CancelCauseFunc
	last   *lastLine
}

// errStdin is the cause of a context that the end of stdin ended.
var errStdin = errors.New("stdin was closed")

// start begins a service. Its log is in JSON with -o json.
func (s *serveFlags) start(a *app) *service {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		panic("coppice: log level " + s.LogLevel + " passed the parser")
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(a.stderr, options)
	if a.json {
		handler = slog.NewJSONHandler(printable.NewJSONWriter(printable.Unwrap(a.stderr)), options)
	}
	v := &service{last: &lastLine{out: handler}}
	handler = &untilLast{handler, v.last}
	if level > slog.LevelDebug {
		handler = newSeldom(handler)
	}
	v.log = slog.New(handler)
	v.ctx, v.cancel = context.WithCancelCause(a.ctx)
	if s.DieWithStdin {
		go func() {
			io.Copy(io.Discard, a.stdin)
			v.cancel(errStdin)
		}()
	}
	keepPrivate(a.ctx)
	if p := processOf(a.ctx); p != nil {
		had := hasTerminal()
		p.survives(func() bool {
			if had && !hasTerminal() {
				return false
			}
			v.log.Info("SIGHUP is ignored: there is nothing to reload")
			return true
		})
	}
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

// ended writes the last line of the log, which says why the service that is called what
// ended, and turns the error that it ended with into that of its command: to be told to stop
// is no failure.
func (v *service) ended(what string, err error) error {
	defer v.cancel(nil)
	if errors.Is(err, coordinator.ErrUsage) || errors.Is(err, worker.ErrConfig) {
		return usageError{err}
	}
	told := v.ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled))
	text := "the " + what + " ends"
	if told {
		v.last.write(slog.New(v.last.out), slog.LevelInfo, text, "reason", reasonToEnd(context.Cause(v.ctx)))
		return nil
	}
	v.last.write(slog.New(v.last.out), slog.LevelError, text, "error", err)
	return err
}

// reasonToEnd says why a context ended.
func reasonToEnd(cause error) string {
	var s signalled
	if errors.As(cause, &s) {
		return "received " + unix.SignalName(s.Signal)
	}
	return cause.Error()
}

// lastLine is the end of a log: nothing is written behind it, though goroutines of
// libraries may outlive what they belong to.
type lastLine struct {
	out slog.Handler

	mu      sync.RWMutex
	written bool
}

func (l *lastLine) write(log *slog.Logger, level slog.Level, text string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	log.Log(context.Background(), level, text, args...)
	l.written = true
}

// untilLast is a handler that writes nothing once the last line is written.
type untilLast struct {
	slog.Handler
	last *lastLine
}

// Handle implements slog.Handler.
func (h *untilLast) Handle(ctx context.Context, r slog.Record) error {
	h.last.mu.RLock()
	defer h.last.mu.RUnlock()
	if h.last.written {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *untilLast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &untilLast{h.Handler.WithAttrs(attrs), h.last}
}

// WithGroup implements slog.Handler.
func (h *untilLast) WithGroup(name string) slog.Handler {
	return &untilLast{h.Handler.WithGroup(name), h.last}
}

// A service writes at most warnLines warnings of one text in warnEvery, however many messages are
// bad: the log shall not fill a disk.
const (
	warnLines = 20
	warnEvery = time.Minute
	warnTexts = 1024 // that are counted at a time
)

// seldom is a handler of logs that counts warnings in the place of writing too many.
type seldom struct {
	slog.Handler
	counts *warnCounts
}

func newSeldom(h slog.Handler) *seldom {
	return &seldom{h, &warnCounts{texts: make(map[string]*warnCount)}}
}

// Handle implements slog.Handler.
func (s *seldom) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn {
		written, omitted := s.counts.add(r.Message, r.Time)
		if !written {
			return nil
		}
		r = r.Clone()
		if omitted > 0 {
			r.AddAttrs(slog.Int("omitted_before", omitted))
		}
	}
	return s.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (s *seldom) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &seldom{s.Handler.WithAttrs(attrs), s.counts}
}

// WithGroup implements slog.Handler.
func (s *seldom) WithGroup(name string) slog.Handler {
	return &seldom{s.Handler.WithGroup(name), s.counts}
}

// warnCounts counts warnings by their texts.
type warnCounts struct {
	mu    sync.Mutex
	texts map[string]*warnCount
}

// warnCount is what there was of one text.
type warnCount struct {
	since            time.Time
	written, omitted int
}

// add counts a warning: whether it is to be written, and how many of its text were not before it.
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
