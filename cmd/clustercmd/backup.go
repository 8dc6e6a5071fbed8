package clustercmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/internal/archive"
	"github.com/coppice-ldl/coppice/internal/units"
)

// BackupCmd is `coppice backup`.
type BackupCmd struct {
	File string `arg:"" placeholder:"FILE|FOLDER" help:"File to write, or a folder for a file that is named after the time."`

	connect.ServerFlags
}

// Help implements kong's HelpProvider.
func (BackupCmd) Help() string {
	return `A backup holds the datasets, jobs, committed training state and models at one index of the log. It has everything that
was acknowledged before the command began. The cluster keeps running meanwhile. The file appears under its name after
it is complete and verified.`
}

// Run implements `coppice backup`.
func (c *BackupCmd) Run(a *cli.App) error {
	path := c.File
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "coppice-"+time.Now().UTC().Format("20060102-150405")+".backup")
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	f, err := cli.CreatePrivate(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	m := progress.New(a)
	h, err := cl.Backup(a.Ctx, f, func(p client.BackupProgress) {
		m.Show(fmt.Sprintf("%s of %s, %s of %s", units.Format(p.Bytes), units.Format(p.OfBytes), units.Count(p.Blobs),
			units.Plural(p.OfBlobs, "blob")))
	})
	m.Clear()
	if err != nil {
		return fmt.Errorf("%s: %w; the incomplete file was deleted", path, err)
	}
	if err := f.Commit(); err != nil {
		return err
	}
	return a.Print(backupShown{path, h}, func(w io.Writer) {
		cli.WritePairs(w, [][2]string{{"backup", path}, {"cluster", h.Cluster}, {"index", units.Count(h.Index)},
			{"blobs", units.Count(h.Blobs)}, {"size", units.Format(h.Bytes)}})
	})
}

// backupShown is what `coppice backup` prints.
type backupShown struct {
	File string `json:"file"`
	archive.Header
}

// RestoreCmd is `coppice restore`.
type RestoreCmd struct {
	File       string   `arg:"" placeholder:"FILE" help:"Backup file, written by coppice backup."`
	Dir        string   `required:"" placeholder:"DIR" help:"Folder of the new coordinator; it must be empty or not exist."`
	ID         string   `default:"a" help:"Id of this coordinator, one of the ids in --peers."`
	DropTokens bool     `help:"Begin without the tokens of users. A token that was revoked after the backup would be valid again. Give the flag on each machine, or on none."`
	Peers      []string `placeholder:"ID=HOST:PORT" help:"All coordinators of the new cluster, as for coppice coordinator (default: only this coordinator, at 127.0.0.1:7100)."`
}

// Help implements kong's HelpProvider.
func (RestoreCmd) Help() string {
	return `Makes the folder with which a coordinator of a new cluster starts. Either restore one coordinator, and add others to it
with coppice cluster add. Or restore the same file on each of three machines, with the same --peers. Then start each
coordinator with the same --id and --peers. Jobs that ran at the time of the backup continue from there. The old cluster
must not run any more.

A certificate that was revoked after the backup is valid again. Revoke it again with coppice certs revoke.`
}

// Run implements `coppice restore`.
func (c *RestoreCmd) Run(a *cli.App) error {
	peers, err := parsePeers(c.Peers)
	if err != nil {
		return err
	}
	cli.KeepPrivate(a.Ctx)
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	m := progress.New(a)
	r, err := coordinator.Restore(a.Ctx, f, coordinator.RestoreConfig{Dir: c.Dir, ID: c.ID, Peers: peers,
		DropTokens: c.DropTokens, Progress: func(blobs, of int) {
			m.Show(fmt.Sprintf("%s of %s", units.Count(blobs), units.Plural(of, "blob")))
		}})
	m.Clear()
	switch {
	case errors.Is(err, coordinator.ErrUsage):
		return cli.Usage(err)
	case errors.Is(err, coordinator.ErrNotEmpty):
		return err // the backup file is not the cause
	case err != nil:
		return fmt.Errorf("%s: %w", c.File, err)
	}
	tokens := "none"
	switch {
	case c.DropTokens:
		tokens = "none (--drop-tokens)"
	case r.Tokens > 0:
		tokens = fmt.Sprintf("%s valid, even if revoked after the backup; coppice token list shows them",
			units.Count(r.Tokens))
	}
	return a.Print(r, func(w io.Writer) {
		cli.WritePairs(w, [][2]string{
			{"folder", r.Dir}, {"coordinator", r.ID}, {"cluster", fmt.Sprintf("%s (of %s)", r.Cluster, r.From.Cluster)},
			{"index", fmt.Sprintf("%s (of %s)", units.Count(r.Index), units.Count(r.From.Index))},
			{"datasets", units.Count(r.Datasets)}, {"jobs", units.Count(r.Jobs)},
			{"tokens", tokens},
			{"certificates", units.Plural(r.Revoked, "certificate") +
				" revoked, as of the backup; revoke later ones again with coppice certs revoke"},
			{"blobs", fmt.Sprintf("%s, %s", units.Count(r.From.Blobs), units.Format(r.From.Bytes))},
		})
	})
}
