package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// foreign is the name of the worker of another version.
const foreign = "foreign"

// otherVersion has both halves of the check at work: a worker process meets
// coordinators that say to be of another protocol, and must end with an error that
// names both; and the cluster hears the heartbeats of a worker of another protocol, and
// must list it as refused.
func otherVersion(ctx context.Context, s *strike) (func(context.Context) error, error) {
	info, err := s.client.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	s.from, s.target = time.Now(), foreign
	return nil, errors.Join(s.foreignCluster(ctx, *info), s.foreignBeats(ctx, info))
}

// foreignCluster starts a worker that is told of another protocol.
func (s *strike) foreignCluster(ctx context.Context, info protocol.Cluster) error {
	info.Protocol++
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(info) // who does not get it asks again
	}))
	source, err := s.certs.Open(certs.Coordinator, foreign)
	if err != nil {
		return err
	}
	front.Listener = certs.Listen(front.Listener, source, certs.Terms{Port: certs.PortHTTP, Within: protocol.LeastHandshake})
	front.Start()
	defer front.Close()
	flags, err := s.certs.Flags(certs.Worker, foreign)
	if err != nil {
		return err
	}
	log := filepath.Join(s.dir, "logs", foreign+".log")
	if err := os.RemoveAll(log); err != nil {
		return err
	}
	n, err := proc.Launch(s.exe, s.env, foreign, log, append([]string{
		"worker", "--id", foreign, "--dir", filepath.Join(s.dir, foreign), "--join", front.Listener.Addr().String(), "--die-with-stdin",
	}, flags...)...)
	if err != nil {
		return err
	}
	for n.Running() {
		if err := wait.For(ctx, lookPause); err != nil {
			return errors.Join(fmt.Errorf("a worker of another version was not refused: %w", err), n.Kill())
		}
	}
	text, err := os.ReadFile(log)
	if n.Err() == nil || !strings.Contains(string(text), fmt.Sprintf("protocol version %d", info.Protocol)) {
		err = errors.Join(err, fmt.Errorf("%w: a worker of another version ended with %v, but its error does not name the version: %s", ErrFailed, n.Err(), text))
	}
	return err
}

// foreignBeats sends heartbeats of another protocol until the worker is refused.
func (s *strike) foreignBeats(ctx context.Context, info *protocol.Cluster) error {
	source, err := s.certs.Open(certs.Worker, foreign)
	if err != nil {
		return err
	}
	conn, err := bus.Connect(ctx, bus.Options{URLs: info.NATS, TLS: source, Name: foreign})
	if err != nil {
		return err
	}
	defer conn.Close()
	beat := protocol.Heartbeat{Worker: foreign, Version: foreign, Protocol: protocol.Version + 1, Numerics: info.Numerics, Slots: 1, Full: true}
	subject := protocol.Subjects{Cluster: info.ID}.Heartbeats(foreign)
	for {
		if err := conn.Send(subject, "", beat.Append(nil)); err != nil && !errors.Is(err, bus.ErrOffline) {
			return err
		}
		now, err := s.client.Cluster(ctx)
		if err != nil {
			return err
		}
		for _, w := range now.Workers {
			if w.ID == foreign && strings.HasPrefix(w.State, "refused") {
				return nil
			}
		}
		if err := wait.For(ctx, lookPause); err != nil {
			return fmt.Errorf("the cluster accepts heartbeats of a worker of another version: %w", err)
		}
	}
}
