package experiment

import (
	"encoding/json"
	"maps"
	"os"
	"sync"
	"time"
)

// lockFile is the file with the lock of a folder.
const lockFile = "lock"

// The process that has the lock of a folder writes into the file of the lock, every worksEvery, which runs it
// computes. If the file is older than worksKept, the process has ended. So a reader needs no lock.
const (
	worksEvery = time.Second
	worksKept  = 10 * time.Second
	maxWorks   = 4 << 20 // bytes of the file that are read
)

// works says on the disk which runs a process computes.
type works struct {
	stop, stopped chan struct{}

	mu      sync.Mutex
	running map[string]float64 // by key: when the run began, in Unix seconds
}

// worksJSON is the contents of the file.
type worksJSON struct {
	Running map[string]float64 `json:"running"`
}

// startWorks writes to a file until end is called. It ignores errors of writing: a reader of the folder then
// takes the process to have ended.
func startWorks(file *os.File) *works {
	w := &works{stop: make(chan struct{}), stopped: make(chan struct{}), running: make(map[string]float64)}
	go func() {
		defer close(w.stopped)
		tick := time.NewTicker(worksEvery)
		defer tick.Stop()
		for {
			w.mu.Lock()
			running := maps.Clone(w.running)
			w.mu.Unlock()
			if b, err := json.Marshal(worksJSON{running}); err == nil {
				if _, err = file.WriteAt(b, 0); err == nil {
					_ = file.Truncate(int64(len(b)))
				}
			}
			select {
			case <-w.stop:
				_ = file.Truncate(0)
				return
			case <-tick.C:
			}
		}
	}()
	return w
}

// end empties the file.
func (w *works) end() {
	close(w.stop)
	<-w.stopped
}

// set notes whether a run is computed.
func (w *works) set(key string, computed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !computed {
		delete(w.running, key)
	} else {
		w.running[key] = float64(time.Now().UnixMilli()) / 1000
	}
}
