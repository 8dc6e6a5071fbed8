package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// mixedRestore restores three coordinators with the same --peers, one of them from a later
// backup of the same cluster. They must not serve, and say why; once that one is restored
// from the same backup as the others, they serve what that has.
func mixedRestore(ctx context.Context, s *strike) (ready time.Duration, err error) {
	d, err := s.separate("mixed-restore")
	if err != nil {
		return 0, err
	}
	defer func() { err = d.end(err) }()
	odd := pick(s, separateIDs)
	s.target = odd
	want, err := d.backups(ctx)
	if err != nil {
		return 0, fmt.Errorf("making backups: %w", err)
	}
	for _, id := range separateIDs {
		file := earlier
		if id == odd {
			file = later
		}
		if err := d.restore(ctx, id, file); err != nil {
			return 0, err
		}
	}
	if err := d.start(separateIDs...); err != nil {
		return 0, err
	}
	if err := d.refuses(ctx, odd); err != nil {
		return 0, fmt.Errorf("%s was restored from a later backup than the others: %w", odd, err)
	}
	if err := errors.Join(d.nodes[odd].Kill(), os.RemoveAll(d.folder(odd)), d.restore(ctx, odd, earlier)); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := d.start(odd); err != nil {
		return 0, err
	}
	if err := d.allReady(ctx, d.servers(separateIDs...)); err != nil {
		return 0, fmt.Errorf("%s was restored from the same backup as the others: %w", odd, err)
	}
	return time.Since(began), d.serves(ctx, want)
}

// The backups of one cluster, which differ by a job and its model.
const (
	earlier = "earlier.backup"
	later   = "later.backup"
)

// backups makes both backups, and returns what is in the earlier one.
func (d *separate) backups(ctx context.Context) (inEarlier []string, err error) {
	o, err := proc.Start(ctx, proc.Config{Exe: d.exe, Env: d.env, Dir: filepath.Join(d.dir, "origin"), Args: d.flags, Certificates: d.certs, Coordinators: 1, Workers: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	c := o.Client()
	if _, err := c.Datasets().Import(ctx, protocol.DatasetPut{Name: stepsData}, generate.Artificial(256, dataSeed), importer.Options{}); err != nil {
		return nil, err
	}
	for seed, file := range []string{earlier, later} {
		of := shortSpec(uint64(seed+1), sizes{shortSteps: leastSteps})
		of.Name = strings.TrimSuffix(file, ".backup")
		j, err := c.Jobs().Submit(ctx, of)
		if err == nil {
			j, err = c.Jobs().Watch(ctx, strconv.FormatUint(j.ID, 10), func(*protocol.JobInfo) {})
		}
		if err == nil && j.State != protocol.Done {
			err = fmt.Errorf("the job %s is %s: %s", j.Name, j.State, j.Error)
		}
		if err == nil && inEarlier == nil {
			inEarlier, err = contents(ctx, c)
		}
		if err = errors.Join(err, backUp(ctx, c, filepath.Join(d.dir, file))); err != nil {
			return nil, err
		}
	}
	return inEarlier, nil
}

// backUp writes a backup to a file.
func backUp(ctx context.Context, c *client.Client, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = c.Backup(ctx, f, nil)
	return errors.Join(err, f.Close())
}

// contents lists the jobs, the models and the datasets of a cluster, a line each. Each
// model is read.
func contents(ctx context.Context, c *client.Client) (list []string, err error) {
	jobs, err := c.Jobs().All(ctx)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		list = append(list, fmt.Sprintf("job %d %s %s", j.ID, j.Name, j.State))
	}
	models, err := c.Models().List(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		b, err := c.Models().Get(ctx, m.Name)
		if err != nil {
			return nil, err
		}
		list = append(list, fmt.Sprintf("model %s %s of %d bytes", m.Name, m.Digest, len(b)))
	}
	data, err := c.Datasets().List(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range data {
		list = append(list, fmt.Sprintf("dataset %s %s", one.Name, one.Digest))
	}
	slices.Sort(list)
	return list, nil
}

// restore makes the folder of a coordinator from a backup.
func (d *separate) restore(ctx context.Context, id, file string) error {
	return d.run(ctx, "restore", filepath.Join(d.dir, file), "--dir", d.folder(id), "--id", id, "--peers", d.peers())
}

// serves checks that the cluster has what it should have and nothing else, and that it
// acknowledges an import.
func (d *separate) serves(ctx context.Context, want []string) error {
	c, err := d.client(client.DefaultPatience, separateIDs...)
	if err != nil {
		return err
	}
	defer c.Close()
	got, err := contents(ctx, c)
	if err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("%w: the restored cluster has:\n%s\nthe backup has:\n%s", ErrFailed, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return d.acknowledges(ctx, "restored", separateIDs...)
}

// refusesFor is how long coordinators that may not serve together are watched at least:
// several elections.
const refusesFor = 5 * time.Second

// refuses watches three coordinators; one is a member of another cluster. None may serve,
// and each must say why.
func (d *separate) refuses(ctx context.Context, odd string) error {
	clusters := make(map[string]string)
	for _, id := range separateIDs {
		name, err := clusterOf(d.folder(id))
		if err != nil {
			return err
		}
		clusters[id] = name
	}
	if err := differs(clusters, odd); err != nil {
		return err
	}
	c, err := d.client(0, separateIDs...)
	if err != nil {
		return err
	}
	defer c.Close()
	for began := time.Now(); ; {
		var untold []string
		for _, id := range separateIDs {
			v := d.view(ctx, id)
			if err := v.serves(); err != nil {
				return err
			}
			if !v.tells(clusters, odd) {
				untold = append(untold, fmt.Sprintf("%s: %d: %s", id, v.status, v.text))
			}
		}
		if err := d.acknowledgesNothing(ctx, c); err != nil {
			return err
		}
		if len(untold) == 0 && time.Since(began) > refusesFor {
			return nil
		}
		if wait.For(ctx, lookPause) != nil {
			return fmt.Errorf("/readyz does not name the other cluster: %s: %w", strings.Join(untold, "; "), context.Cause(ctx))
		}
	}
}

// clusterOf returns the id of the cluster that a folder is of: the first word of its file
// CLUSTER.
func clusterOf(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "CLUSTER"))
	words := strings.Fields(string(b))
	if err != nil || len(words) == 0 {
		return "", errors.Join(err, fmt.Errorf("%s does not name its cluster", dir))
	}
	return words[0], nil
}

// differs checks that the folder of one coordinator is of another cluster than those of the
// others, which are of one.
func differs(clusters map[string]string, odd string) error {
	for _, id := range separateIDs {
		for _, other := range separateIDs {
			if same := (id == odd) == (other == odd); (clusters[id] == clusters[other]) != same {
				return fmt.Errorf("%w: only %s was restored from another backup, but the names of the clusters are %v", ErrFailed, odd, clusters)
			}
		}
	}
	return nil
}

// acknowledgesNothing checks that nothing is acknowledged and nothing listed.
func (d *separate) acknowledgesNothing(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	if jobs, err := c.Jobs().All(ctx); err == nil {
		return fmt.Errorf("%w: the coordinators list %d jobs, although they must not serve", ErrFailed, len(jobs))
	}
	if j, err := c.Jobs().Submit(ctx, shortSpec(1, sizes{shortSteps: leastSteps})); err == nil {
		return fmt.Errorf("%w: the coordinators acknowledge the job %s, although they must not serve", ErrFailed, j.Name)
	}
	return nil
}

// view is what a coordinator says of itself.
type view struct {
	id, leader string
	status     int    // of /readyz; 0: no answer
	text       string // of /readyz
}

func (d *separate) view(ctx context.Context, id string) view {
	v := view{id: id}
	status, text, err := d.get(ctx, d.server(id), "/readyz")
	if err != nil {
		v.text = err.Error()
		return v
	}
	v.status, v.text = status, strings.TrimSpace(string(text))
	if s, err := d.self(ctx, d.server(id)); err == nil {
		v.leader = s.Leader
	}
	return v
}

// serves is an error if the coordinator is ready, or knows a leader.
func (v view) serves() error {
	switch {
	case v.leader != "":
		return fmt.Errorf("%w: %s says that %s leads, although no coordinator may lead", ErrFailed, v.id, v.leader)
	case v.status == http.StatusOK:
		return fmt.Errorf("%w: %s says that it is ready, although it must not be: %s", ErrFailed, v.id, v.text)
	}
	return nil
}

// tells reports whether the coordinator names a cluster that is not its own.
func (v view) tells(clusters map[string]string, odd string) bool {
	for id, name := range clusters {
		if (id == odd) != (v.id == odd) && strings.Contains(v.text, name) {
			return true
		}
	}
	return false
}
