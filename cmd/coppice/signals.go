package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signalled is the cause of a context that a signal ended.
type signalled struct{ syscall.Signal }

func (s signalled) Error() string { return s.Signal.String() }

// Is lets whoever returns the cause of a context be understood as one that was ended.
func (signalled) Is(target error) bool { return target == context.Canceled }

// untilSignal returns a context that Ctrl-C, SIGTERM or the end of the terminal (SIGHUP,
// unless nohup had it ignored) ends. A closed pipe becomes an error of the write, not the
// end of the process.
func untilSignal() (context.Context, func()) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	came := make(chan os.Signal, 1)
	signal.Notify(came, signals...)
	go func() {
		select {
		case s := <-came:
			cancel(signalled{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(came); cancel(nil) }
}
