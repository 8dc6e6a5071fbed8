package num

import (
	"crypto/sha256"
	"encoding/binary"
)

// Key selects one of 2^64 independent random functions.
type Key [2]uint32

// NewKey derives the key of one purpose ("theta", "batch") under a seed: the
// first 8 bytes of SHA-256(seed as 8 little-endian bytes, then purpose).
func NewKey(seed uint64, purpose string) Key {
	h := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, seed), purpose...))
	return Key{binary.LittleEndian.Uint32(h[:4]), binary.LittleEndian.Uint32(h[4:8])}
}

// Philox is Philox4x32-10 of Salmon et al. 2011: a bijection of the counters for
// each key, whose outputs pass as independent random numbers.
func Philox(key Key, ctr [4]uint32) [4]uint32 {
	k0, k1 := key[0], key[1]
	c0, c1, c2, c3 := ctr[0], ctr[1], ctr[2], ctr[3]
	for range 10 {
		p := uint64(c0) * 0xD2511F53
		q := uint64(c2) * 0xCD9E8D57
		c0, c1, c2, c3 = uint32(q>>32)^c1^k0, uint32(q), uint32(p>>32)^c3^k1, uint32(p)
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return [4]uint32{c0, c1, c2, c3}
}
