package protocol

// valueBefore is how many bytes of a Value come before Data, and partBefore how many of a Part come before the numbers of
// F32, without the worker's name, which begins at partWorker, and F64, whose length is a multiple of 8.
const (
	valueBefore = 2 + 2*8 + 2 + 8 + 8
	partWorker  = 2 + 3*8 + 4
	partBefore  = partWorker + 1 + 4 + 8 + 4 + 8 + 8
)

// numberBytes is the greatest size of a number.
const numberBytes = 8

// lead returns how far behind a multiple of numberBytes a message begins in memory that begins like b, so that the
// numbers of a Value or a Part stand where such numbers may be, and need not be moved.
func lead(b []byte) int {
	kind, err := KindOf(b)
	switch {
	case err != nil:
		return 0
	case kind == KindValue:
		return leadTo(valueBefore)
	case kind == KindPartial && len(b) >= partWorker:
		return leadTo(partBefore + le.Uint32(b[partWorker-4:]))
	}
	return 0
}

// leadTo returns the lead of numbers that come behind so many bytes.
func leadTo(before uint32) int { return int(-before % numberBytes) }
