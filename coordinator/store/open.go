package store

import (
	"errors"

	"github.com/hashicorp/go-hclog"
)

// Open starts a node in a folder that is settled (Folder.Decide): it restores the last
// snapshot, listens, and joins its peers. The folder and the listener of config belong to the
// store from then on, also if Open fails.
// Errors wrap ErrFolder or ErrCorrupt, or name the address or path at fault; nothing is left
// behind then.
func Open(config Config, folder *Folder) (*Store, error) {
	c, err := config.withDefaults()
	if err == nil && !folder.settled() {
		err = errUndecided
	}
	if err != nil {
		return nil, errors.Join(err, closeListener(&config), folder.Close())
	}
	s := newStore(c)
	i := folder.Identity()
	s.folder, s.self = folder, i.server()
	if err := s.open(i, newLog(c.Logger)); err != nil {
		return nil, errors.Join(err, s.release())
	}
	s.work.Go(s.relay)
	s.work.Go(s.maintain)
	s.work.Go((&folderWatch{store: s}).run)
	return s, nil
}

// errUndecided says that nobody has found out how a new node begins.
var errUndecided = errors.New("store: this node has not decided yet whether to start or join a cluster")

func (f *Folder) settled() bool {
	i := f.Identity()
	return i.settled()
}

func closeListener(c *Config) error {
	if c.Listener == nil {
		return nil
	}
	return c.Listener.Close()
}

// open takes what the store needs, in the order in which release gives it back
// backwards.
func (s *Store) open(i Identity, log hclog.Logger) (err error) {
	if s.stream, err = listen(&s.config, i); err != nil {
		return err
	}
	return s.startNode(log)
}
