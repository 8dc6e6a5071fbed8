package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// copyFolder copies a coordinator's folder, as a disk that is cloned, and starts a second
// process on the copy at another address. Two processes with one identity could vote twice:
// the second must end and name the address of the first.
func copyFolder(ctx context.Context, s *strike) (heal func(context.Context) error, err error) {
	n := pick(s, s.cluster.Coordinators)
	name := fmt.Sprintf("%s-copy-%08x", n.Name, s.rng.Uint32())
	dir := filepath.Join(s.dir, name)
	// All files are of one moment.
	err = errors.Join(n.Stop(), os.CopyFS(dir, os.DirFS(n.Dir)), n.Continue())
	if err != nil {
		return nil, fmt.Errorf("copying the folder of %s: %w", n.Name, err)
	}
	if err := s.healthy(ctx); err != nil { // where the leader was stopped, another may lead
		return nil, err
	}
	before, err := s.term(ctx)
	if err != nil {
		return nil, err
	}
	s.on(n)
	second, err := s.cluster.CopyCoordinator(n, name, dir)
	if err != nil {
		return nil, err
	}
	if err := second.Wait(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("a process on a copy of the folder of %s did not end, although the first process runs: %w", n.Name, err), second.Kill())
	}
	text, err := os.ReadFile(second.Log)
	if err != nil {
		return nil, err
	}
	if err := refusedCopy(second.ExitCode(), string(text), s.cluster.HTTP(n)); err != nil {
		return nil, err
	}
	after, err := s.term(ctx)
	if err == nil && after > before+1 {
		err = fmt.Errorf("%w: the term rose from %d before a process on a copy of the folder of %s ran to %d", ErrFailed, before, n.Name, after)
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// refusedCopy checks how a process ended whose folder is a copy of that of the coordinator at
// an address: with exit code 1 and an error that names the address.
func refusedCopy(code int, log, address string) error {
	const begins = "coppice: "
	said := log[max(0, strings.LastIndex(log, begins)):]
	if code != 1 || !strings.HasPrefix(said, begins) || !strings.Contains(said, address) {
		return fmt.Errorf("%w: a process on a copy of the folder of the coordinator at %s ended with exit code %d and said: %s", ErrFailed, address, code, said)
	}
	return nil
}

// term returns the greatest term that a coordinator is in.
func (r *rig) term(ctx context.Context) (last uint64, err error) {
	for _, server := range r.servers {
		s, err := r.self(ctx, server)
		if err != nil {
			return 0, err
		}
		last = max(last, s.Term)
	}
	return last, nil
}

// deleteFolder deletes the folder of a running coordinator, of the leader in one of two
// cases. It must end or be not ready; what is acknowledged meanwhile must be there once it
// was started again.
func deleteFolder(ctx context.Context, s *strike) (heal func(context.Context) error, err error) {
	n := s.either()
	return s.folderless(ctx, n, func() error { return deleteInUse(ctx, n.Dir) }, func() error { return nil })
}

// unmountUnder unmounts the disk of a running coordinator: files that are open stay, and
// the folder is empty. Later it is started on the disk, or on an empty one.
func unmountUnder(ctx context.Context, s *strike) (heal func(context.Context) error, err error) {
	n := s.either()
	return s.folderless(ctx, n, func() error { return mountTool("umount", "-l", n.Dir) }, func() error {
		if _, err := os.Stat(s.image(n.Name)); err == nil {
			return mountBlockDisk(s.image(n.Name), n.Dir)
		}
		return mountDisk(n.Dir)
	})
}

// either draws the leader in one of two cases, and another coordinator in the others.
func (s *strike) either() *proc.Node {
	if s.rng.IntN(2) == 0 {
		return s.leader
	}
	return s.follower()
}

// folderless has a coordinator lose its folder while it runs, and starts it again once that
// was noticed and its disk is mended. An import that begins with the loss may be refused; one
// that begins once the process has ended may not.
func (s *strike) folderless(ctx context.Context, n *proc.Node, lose, mend func() error) (heal func(context.Context) error, err error) {
	during, after := fmt.Sprintf("during-%08x", s.rng.Uint32()), fmt.Sprintf("after-%08x", s.rng.Uint32())
	s.on(n)
	if err := lose(); err != nil {
		return nil, err
	}
	mended := false
	defer func() {
		if !mended { // what is unmounted in the end must be mounted
			err = errors.Join(err, n.Kill(), mend())
		}
	}()
	var refused error
	g, together := errgroup.WithContext(ctx)
	g.Go(func() error {
		refused = s.keep(together, during, 64)
		return together.Err()
	})
	g.Go(func() error { return s.noticed(together, s.cluster.HTTP(n), n.Running) })
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("%s lost its folder: %w", n.Name, err)
	}
	if err := errors.Join(n.Quit(ctx), s.keep(ctx, after, 64)); err != nil {
		return nil, fmt.Errorf("%s lost its folder and has ended: %w", n.Name, err)
	}
	mended = true
	if err := errors.Join(mend(), n.Restart()); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		err := s.kept(ctx, after)
		if refused == nil {
			err = errors.Join(err, s.readable(ctx, during))
		}
		return errors.Join(err, s.readable(ctx, after))
	}, nil
}

// deleteInUse deletes a folder in which a process makes files.
func deleteInUse(ctx context.Context, dir string) error {
	for {
		err := os.RemoveAll(dir)
		if err == nil {
			return nil
		}
		if wait.For(ctx, lookPause) != nil {
			return err
		}
	}
}
