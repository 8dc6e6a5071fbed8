package bus

import (
	"fmt"
	"log/slog"
	"strings"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// serverLog hands the server's log to slog. What is fatal to the server, like a
// port that is taken, goes to a channel: a library does not end the process.
type serverLog struct {
	log   *slog.Logger
	fatal chan string
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(text(format, v)) }

// Warnf implements natsserver.Logger. Package certs verifies identities in place of the
// library, which then warns that it verifies nothing.
func (l *serverLog) Warnf(format string, v ...any) {
	if t := text(format, v); strings.Contains(t, "solicited routes will not be verified") {
		l.log.Debug(t)
	} else {
		l.log.Warn(t)
	}
}

// Errorf implements natsserver.Logger. That clients are turned away is no error, nor that
// one wants what it has no right to: it is told, and may try as often as it likes.
func (l *serverLog) Errorf(format string, v ...any) {
	if t := text(format, v); strings.HasSuffix(t, natsserver.ErrAuthentication.Error()) || strings.Contains(t, " Violation - ") {
		l.log.Debug(t)
	} else {
		l.log.Warn(t)
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
