package round

import "fmt"

// Var is a named, versioned value. The same (ID, Version) always has the same
// bytes within a job.
type Var struct {
	ID      uint16
	Version uint64
	Data    []byte // little-endian
	// Chunks, where set, are the value in place of Data: results of collected tasks. They travel
	// one by one, and none to a worker that has it already.
	Chunks []Chunk
	// Whole returns, of a value of Pieces in a Round, the Data that says the same, for workers
	// that know nothing of pieces.
	Whole func() []byte
}

// Chunk is a piece of a value. Its methods may be called concurrently.
type Chunk interface {
	// Digest returns the SHA-256, in hex, of the bytes.
	Digest() string
	// Bytes returns the bytes, which nobody may change, and which the caller may keep.
	Bytes() ([]byte, error)
}

// Vars are the values that a task can read.
type Vars []Var

// Find returns a value. It panics if the round did not list the value.
func (v Vars) Find(id uint16) *Var {
	for i := range v {
		if v[i].ID == id {
			return &v[i]
		}
	}
	panic(fmt.Sprintf("round: variable %d is not part of the round", id))
}

// Get returns the bytes of a value. It panics if the round did not list the value.
func (v Vars) Get(id uint16) []byte { return v.Find(id).Data }

// Version returns the version of a value. It panics if the round did not list the value.
func (v Vars) Version(id uint16) uint64 { return v.Find(id).Version }
