package bus

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// serverLog hands the server's log to slog. What is fatal to the server, like a
// port that is taken, goes to a channel: a library does not end the process.
type serverLog struct {
	log   *slog.Logger
	fatal chan string

	mu    sync.Mutex
	lines map[string]int // of this minute, by text without digits
	since time.Time
}

const (
	// maxLines bounds the warnings of one kind in a minute: while a coordinator is down, the library tries
	// to connect each second.
	maxLines = 10
	maxKinds = 64 // kinds of warnings in a minute; further ones count as one
)

// warn logs a warning, unless there were too many of its kind in this minute. Warnings are of one
// kind if their texts differ only in digits, as addresses do.
func (l *serverLog) warn(text string) {
	kind := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
	l.mu.Lock()
	if now := time.Now(); now.Sub(l.since) >= time.Minute {
		l.lines, l.since = make(map[string]int), now
	}
	if l.lines[kind] == 0 && len(l.lines) >= maxKinds {
		kind = ""
	}
	l.lines[kind]++
	n := l.lines[kind]
	l.mu.Unlock()
	switch {
	case n < maxLines:
		l.log.Warn(text)
	case n == maxLines:
		l.log.Warn(text, "note", "further warnings of this kind are left out until the next minute")
	default:
		l.log.Debug(text)
	}
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(text(format, v)) }

// Warnf implements natsserver.Logger. Package certs verifies identities in place of the
// library, which then warns that it verifies nothing.
func (l *serverLog) Warnf(format string, v ...any) {
	if t := text(format, v); strings.Contains(t, "solicited routes will not be verified") {
		l.log.Debug(t)
	} else {
		l.warn(t)
	}
}

// Errorf implements natsserver.Logger. That clients are turned away is no error, nor that
// one wants what it has no right to: it is told, and may try as often as it likes.
func (l *serverLog) Errorf(format string, v ...any) {
	if t := text(format, v); strings.HasSuffix(t, natsserver.ErrAuthentication.Error()) || strings.Contains(t, " Violation - ") {
		l.log.Debug(t)
	} else {
		l.warn(t)
	}
}

func (l *serverLog) Debugf(format string, v ...any) { l.log.Debug(text(format, v)) }
func (l *serverLog) Tracef(format string, v ...any) { l.log.Debug(text(format, v)) }

func (l *serverLog) Fatalf(format string, v ...any) {
	l.log.Error(text(format, v))
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}

func text(format string, v []any) string { return "nats: " + fmt.Sprintf(format, v...) }
