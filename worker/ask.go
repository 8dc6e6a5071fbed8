package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// answer is what one coordinator said.
type answer struct {
	cluster *protocol.Cluster // nil: err
	err     error
	kept    bool // its address is known only from the worker's folder
}

// askAll asks every coordinator that is known, at once, and returns the answers that
// come within a time, or until one is enough. Those who know no leader wait for half of
// that time until they do. Where nobody answers, the error says why. It is called by one
// goroutine at a time.
func (j *joiner) askAll(ctx context.Context, within time.Duration, enough func(*protocol.Cluster) bool) ([]*protocol.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if j.net != nil {
		return j.askNet(ctx)
	}
	wait := fmt.Sprintf("&wait_ms=%d", (within / 2).Milliseconds()) // for a leader
	asked := len(j.addresses)
	answers := make(chan answer, asked)
	for _, address := range j.addresses {
		cluster := j.of[address]
		go func() {
			c, err := j.askOne(ctx, address, cluster, wait)
			answers <- answer{c, err, cluster != ""}
		}()
	}
	var came []answer
	var errs []error
	for range asked { // all, so that no goroutine is left behind
		a := <-answers
		if a.err != nil {
			errs = append(errs, a.err)
			continue
		}
		if !a.kept && enough(a.cluster) {
			cancel()
		}
		came = append(came, a)
	}
	list := preferred(came)
	for _, c := range list {
		j.take(c)
	}
	if c := newest(list); c != nil {
		j.keep(c)
		j.forget(c)
	}
	return list, chooseError(list, errs)
}

// preferred leaves out what coordinators said that are known only from the folder, where
// others answered for another cluster: --join decides which cluster a worker serves.
func preferred(came []answer) (list []*protocol.Cluster) {
	joined := ""
	for _, a := range came {
		if !a.kept {
			joined = a.cluster.ID
		}
	}
	for _, a := range came {
		if !a.kept || joined == "" || a.cluster.ID == joined {
			list = append(list, a.cluster)
		}
	}
	return list
}

// chooseError returns the error of a question that nobody answered; of those that
// came, that of another version, which ends the worker.
func chooseError(list []*protocol.Cluster, errs []error) error {
	if len(list) > 0 {
		return nil
	}
	for _, err := range errs {
		if errors.Is(err, ErrVersion) {
			return err
		}
	}
	return errors.Join(errs...)
}

// take learns from an answer where coordinators are.
func (j *joiner) take(c *protocol.Cluster) {
	for _, m := range c.Coordinators {
		j.learn(m.HTTP)
	}
	if len(j.nats) > 0 {
		c.NATS = j.nats
	}
}

// askNet is askAll of a network of the caller's making.
func (j *joiner) askNet(ctx context.Context) ([]*protocol.Cluster, error) {
	list, err := j.net.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if err := checkCluster("the network", c); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// newest returns the answer of the highest epoch; of two of one epoch that which names a
// leader, which the other does not know of yet, or any more. Nil: there is none.
func newest(answers []*protocol.Cluster) *protocol.Cluster {
	var best *protocol.Cluster
	for _, c := range answers {
		if best == nil || c.Epoch > best.Epoch || c.Epoch == best.Epoch && best.Leader == "" {
			best = c
		}
	}
	return best
}
