package store

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// newLog returns a logger for Raft that writes to log.
func newLog(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "raft", Level: hclog.Debug, Output: io.Discard})
	l.RegisterSink(sink{log})
	return l
}

// sink hands hclog's records to slog.
type sink struct{ log *slog.Logger }

// levels are one below Raft's own: what it informs of at every election is detail
// here, and what it calls an error (a peer that does not answer) mends itself.
var levels = map[hclog.Level]slog.Level{
	hclog.Info: slog.LevelDebug, hclog.Warn: slog.LevelInfo, hclog.Error: slog.LevelWarn,
}

// Accept implements hclog.SinkAdapter.
func (s sink) Accept(name string, level hclog.Level, msg string, args ...any) {
	to, ok := levels[level]
	if !ok || !s.log.Enabled(context.Background(), to) {
		return
	}
	attrs := append([]any{"component", name}, args...)
	for i, a := range attrs {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			attrs[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	s.log.Log(context.Background(), to, msg, attrs...)
}
