package clustercmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/internal/wait"
)

// manager is the service manager that started this process, such as systemd. The process tells it by datagrams to the
// socket in NOTIFY_SOCKET that it is ready, that it works, and that it stops. The zero value is no manager.
type manager struct {
	conn *net.UnixConn // nil without a manager
	// patience is how long the manager waits for a sign of life before it ends this process. 0: it does not watch.
	patience time.Duration
	log      *slog.Logger
	stopping sync.Once
}

// checksInPatience is how often this process is checked within manager.patience.
const checksInPatience = 3

// openManager connects to the service manager that the environment names, and removes it from the environment, because
// the processes that this process starts do not speak for it.
func openManager(log *slog.Logger) (*manager, error) {
	m := &manager{log: log}
	socket, period, pid := os.Getenv("NOTIFY_SOCKET"), os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID")
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		os.Unsetenv(name)
	}
	if socket == "" {
		return m, nil
	}
	if socket[0] != '/' && socket[0] != '@' {
		return nil, fmt.Errorf("NOTIFY_SOCKET=%s: want a path, or @ and the name of an abstract socket", socket)
	}
	var err error
	if m.conn, err = net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"}); err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET=%s: %w", socket, err)
	}
	if period == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return m, nil
	}
	micros, err := strconv.ParseInt(period, 10, 64)
	if m.patience = time.Duration(micros) * time.Microsecond; err != nil || m.patience <= 0 {
		return nil, errors.Join(fmt.Errorf("WATCHDOG_USEC=%s: want a number of microseconds", period), m.conn.Close())
	}
	return m, nil
}

// tell sends a state to the manager.
func (m *manager) tell(state string) {
	if m.conn == nil {
		return
	}
	if _, err := m.conn.Write([]byte(state)); err != nil {
		m.log.Warn("the service manager cannot be told about this process", "state", state, "error", err)
	}
}

// stop tells the manager that this process stops. Later calls do nothing.
func (m *manager) stop() { m.stopping.Do(func() { m.tell("STOPPING=1") }) }

// watch tells the manager that this process works as long as check returns nil, until ctx is done. A check that does
// not return, or fails each time, makes the manager end this process.
func (m *manager) watch(ctx context.Context, check func(ctx context.Context) error) {
	if m.patience == 0 {
		return
	}
	every := m.patience / checksInPatience
	for range wait.Every(ctx, every) {
		checking, cancel := context.WithTimeout(ctx, every)
		err := check(checking)
		cancel()
		switch {
		case err == nil:
			m.tell("WATCHDOG=1")
		case ctx.Err() == nil:
			m.log.Warn("this process does not work; without a change, the service manager ends it", "reason", err)
		}
	}
}
