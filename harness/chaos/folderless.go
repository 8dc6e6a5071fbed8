package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
)

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
