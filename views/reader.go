package views

import (
	"context"

	"switchyard/internal/domain"
)

// may reports whether the reader may do what needs a role. Who reads is in the context of rendering, so that what somebody
// may not do can be left out wherever it would be offered.
func may(ctx context.Context, needs domain.Role) bool { return domain.ActorOf(ctx).Role.Allows(needs) }
