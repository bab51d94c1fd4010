package cluster

import "hash/fnv"

// winner returns the gateway to which a duty belongs among live ones: that with the highest hash of both names
// (rendezvous hashing). It is "" where there is none.
func winner(duty string, live []string) (best string) {
	var highest uint64
	for _, id := range live {
		h := fnv.New64a()
		_, _ = h.Write([]byte(id))
		_, _ = h.Write([]byte{0})
		_, _ = h.Write([]byte(duty))
		if sum := mix(h.Sum64()); best == "" || sum > highest || sum == highest && id < best {
			best, highest = id, sum
		}
	}
	return best
}

// mix spreads the bits of a hash: those of names that differ in their last letter only are close together in FNV. It is the
// finalizer of MurmurHash3.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
