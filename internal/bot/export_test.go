package bot

import "switchyard/internal/domain"

// SetBuild makes s use another transport.
func (s *Supervisor) SetBuild(build func(domain.BotConfig) (Transport, error)) {
	s.build = func(_ Options, c domain.BotConfig) (Transport, error) { return build(c) }
}

// ErrRefused is what a transport returns for a room that does not accept a message.
var ErrRefused = errRefused
