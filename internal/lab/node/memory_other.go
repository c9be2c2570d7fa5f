//go:build !unix

package node

import (
	"errors"
	"os"
)

// mapFile maps nothing here.
func mapFile(*os.File, int) ([]byte, func() error, error) {
	return nil, nil, errors.New("this system has no shared mappings for it: use another transport")
}
