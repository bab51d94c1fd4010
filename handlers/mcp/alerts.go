package mcp

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

func (s *Server) addAlerts() {
	add(s, tool{
		name: "acknowledge", needs: domain.RoleOperator, required: []string{"key"},
		description: "Acknowledge something that needs attention: nobody is notified of it any more.",
		arguments: `"key":{"type":"string","description":"from overview"},"for":{"type":"string","description":"such as ` +
			`4h; by default until it ends or changes"}`,
	}, func(ctx context.Context, in struct {
		Key string  `json:"key"`
		For *string `json:"for"`
	},
	) (any, error) {
		var duration time.Duration
		if in.For != nil {
			var err error
			if duration, err = domain.ParseAcknowledgedFor(*in.For); err != nil {
				return nil, err
			}
		}
		if err := s.service.Alerts.Acknowledge(ctx, in.Key, duration); err != nil {
			return nil, hint(err, domain.NotFound, "It may already be over; overview shows the keys")
		}
		return struct {
			OK bool `json:"ok"`
		}{true}, nil
	})
}
