package chaos

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// twinWorker starts a second worker under the id of one that runs, with a folder of its
// own. Whichever of them the cluster believes, jobs end as they would have.
func twinWorker(_ context.Context, s *strike) (func(context.Context) error, error) {
	n := s.worker()
	s.on(n)
	dir := filepath.Join(s.dir, n.Name+"-twin")
	args := append([]string{
		"worker", "--id", n.Name, "--dir", dir, "--join", s.cluster.Servers(), "--listen", "127.0.0.1:0", "--die-with-stdin",
	}, s.extra(n.Name)...)
	twin, err := proc.Launch(s.exe, s.env, n.Name, filepath.Join(s.dir, "logs", n.Name+"-twin.log"), args...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		err := wait.For(ctx, s.between(leastAlone, mostAlone))
		return errors.Join(err, twin.Quit(ctx), os.RemoveAll(dir))
	}, nil
}
