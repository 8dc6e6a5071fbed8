package round

import "fmt"

// Var is a named, versioned value. The same (ID, Version) always has the same
// bytes within a job.
type Var struct {
	ID      uint16
	Version uint64
	Data    []byte // little-endian
}

// Vars are the values that a unit can read.
type Vars []Var

// Get returns the bytes of a value. It panics if the round did not list the value.
func (v Vars) Get(id uint16) []byte {
	for i := range v {
		if v[i].ID == id {
			return v[i].Data
		}
	}
	panic(fmt.Sprintf("round: variable %d is not part of the round", id))
}

// Version returns the version of a value. It panics if the round did not list the value.
func (v Vars) Version(id uint16) uint64 {
	for i := range v {
		if v[i].ID == id {
			return v[i].Version
		}
	}
	panic(fmt.Sprintf("round: variable %d is not part of the round", id))
}
