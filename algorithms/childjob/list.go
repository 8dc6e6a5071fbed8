package childjob

import "encoding/binary"

// AppendList appends encoded outcomes, each after its length in 8 bytes, little-endian.
func AppendList(dst []byte, parts [][]byte) []byte {
	for _, p := range parts {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(len(p)))
		dst = append(dst, p...)
	}
	return dst
}

// List reads what AppendList wrote; the parts share the memory of b. Errors wrap ErrFormat.
func List(b []byte) (parts [][]byte, err error) {
	for len(b) > 0 {
		if len(b) < 8 || binary.LittleEndian.Uint64(b) > uint64(len(b)-8) {
			return nil, ErrFormat
		}
		n := 8 + int(binary.LittleEndian.Uint64(b))
		parts, b = append(parts, b[8:n:n]), b[n:]
	}
	return parts, nil
}
