package git

// Within limits the memory of commands, in bytes.
func (r Repository) Within(memory uint64) Repository {
	r.memory = memory
	return r
}
