package bus

import (
	"math"
	"time"
)

const (
	// stuckFor is after how long clients are taken to read nothing that have read no more than before.
	stuckFor = 200 * time.Millisecond
	// slowFor is the time in which they have to read slowFor's share of leastRead, in bytes a second: the
	// rate of the thinnest link that blobs and uploads are made for.
	slowFor   = 5 * time.Second
	leastRead = 16 << 10
)

// drain tells, while a long message is sent to clients, whether they read what waits for them. All of them are one
// to it: as long as any reads fast enough, there will be room.
type drain struct {
	sent  int64     // bytes of the message
	most  int64     // that were ever read: sent, and no more waiting
	grew  time.Time // when most did
	mark  int64     // most, when the present slowFor began
	since time.Time // which it did at this time
}

// nothingRead is drain.most before the first look.
const nothingRead = math.MinInt64

// begin forgets what was: nobody waited for clients just now.
func (d *drain) begin() { *d = drain{most: nothingRead} }

// slow takes in that so many bytes wait at a time, and reports whether clients read too little of them.
func (d *drain) slow(waits int64, now time.Time) bool {
	read := d.sent - waits
	if d.most == nothingRead {
		d.mark, d.since = read, now
	}
	if read > d.most {
		d.most, d.grew = read, now
	}
	if now.Sub(d.grew) > stuckFor {
		return true
	}
	took := now.Sub(d.since)
	if took < slowFor {
		return false
	}
	got := d.most - d.mark
	d.mark, d.since = d.most, now
	return float64(got) < leastRead*took.Seconds()
}
