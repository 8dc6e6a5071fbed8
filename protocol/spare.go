package protocol

import (
	"slices"
	"unsafe"
)

// leastSpare is the size from which on memory of messages is used again.
const leastSpare = 1 << 20

// spareRoom is what such memory has beside its message's bytes, so that the next message, which may begin elsewhere in it
// (lead), fits too.
const spareRoom = 512

// mostSpare is how many of them are kept, and mostLarge how many of those of largeSpare bytes or more: two workers have
// one each on its way. A third is there where a task is computed twice, and would stay for as long as the job runs.
const (
	mostSpare  = 4
	mostLarge  = 2
	largeSpare = 16 << 20
)

// Reuse takes the memory of a message that was delivered and that nobody reads any more: another one of its size takes
// it.
func (r *Room) Reuse(msg []byte) {
	if cap(msg) < leastSpare {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	most := mostSpare
	if cap(msg) >= largeSpare {
		most = mostLarge
	}
	if n := len(r.spare); n >= most {
		r.spare = slices.Delete(r.spare, 0, n-most+1)
	}
	r.spare = append(r.spare, msg)
}

// Release drops the memory that Reuse was given: no long message is expected until the next job.
func (r *Room) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spare = nil
}

// taken returns memory for n bytes of a message with a lead that was given to Reuse, or nil.
func (r *Room) taken(n, lead int) []byte {
	if n < leastSpare {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.spare, func(b []byte) bool { return cap(b) >= n+numberBytes && cap(b)/2 <= n })
	if at < 0 {
		return nil
	}
	b := r.spare[at]
	r.spare = slices.Delete(r.spare, at, at+1)
	return placed(b, lead)
}

// memory returns memory for n bytes of a message with a lead, which small ones do not need.
func (r *Room) memory(n, lead int) []byte {
	if n < leastSpare {
		return make([]byte, 0, n)
	}
	if b := r.taken(n, lead); b != nil {
		return b
	}
	return placed(make([]byte, 0, n+spareRoom), lead)
}

// placed returns the memory of b, empty, from where a message with a lead may begin.
func placed(b []byte, lead int) []byte {
	b = b[:cap(b)]
	skip := (lead - int(uintptr(unsafe.Pointer(&b[0]))%numberBytes) + numberBytes) % numberBytes
	return b[skip:skip]
}
