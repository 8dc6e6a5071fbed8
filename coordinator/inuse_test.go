package coordinator_test

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/coordinator/store"
)

// A coordinator that is started in the folder of another, which runs or does not, ends
// before it connects to the routes of anybody.
func TestFolderOfAnotherCoordinator(t *testing.T) {
	ctx := deadline(t)
	c := start(t, 1, 0)
	c.leader(ctx)
	for _, test := range []struct {
		what string
		want error
	}{{"it runs", store.ErrLocked}, {"it does not", store.ErrFolder}} {
		if test.want == store.ErrFolder {
			c.stop("a")
		}
		own, third := freeBlock(t), freeBlock(t)
		routes, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", third+3))
		if err != nil {
			t.Fatal(err)
		}
		var connected atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				conn, err := routes.Accept()
				if err != nil {
					return
				}
				connected.Add(1)
				conn.Close()
			}
		}()
		err = coordinator.Run(ctx, coordinator.Config{
			ID: "b", Dir: filepath.Join(c.dir, "a"), Heartbeat: 200 * time.Millisecond, Log: c.log.With("node", "b"),
			Peers: []coordinator.Peer{c.peers[0], {ID: "b", Host: "127.0.0.1", Port: own}, {ID: "c", Host: "127.0.0.1", Port: third}},
		})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.what, err, test.want)
		}
		routes.Close()
		<-ended
		if n := connected.Load(); n > 0 {
			t.Errorf("%s: %d connections to routes", test.what, n)
		}
	}
}
