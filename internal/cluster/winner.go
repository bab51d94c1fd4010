package cluster

import "hash/fnv"

// candidate is a live gateway with the hash of its id.
type candidate struct {
	id   string
	hash uint64
}

func candidates(live []string) []candidate {
	all := make([]candidate, len(live))
	for i, id := range live {
		all[i] = candidate{id, hash(id)}
	}
	return all
}

// winner returns the live gateway to which a duty belongs, that with the highest hash of both names (rendezvous hashing), ""
// if there are none. Each name is hashed only once: see BenchmarkWinner.
func winner(duty string, live []candidate) (best string) {
	var highest uint64
	name := hash(duty)
	for _, c := range live {
		if both := mix(c.hash ^ name); best == "" || both > highest || both == highest && c.id < best {
			best, highest = c.id, both
		}
	}
	return best
}

func hash(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return mix(h.Sum64())
}

// mix spreads the bits of a hash with the finalizer of MurmurHash3: FNV hashes of names that differ only in their last letter
// are close together.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
