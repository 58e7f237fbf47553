package csimock

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The general size limits of CSI fields.
const (
	maxStringBytes = 128
	maxMapBytes    = 4 << 10
)

// checkText requires a name or identifier as CSI defines it: at most maxStringBytes, no
// control characters.
func checkText(field, value string) error {
	if value == "" {
		return status.Errorf(codes.InvalidArgument, "%s is required", field)
	}
	return checkOptionalText(field, value, maxStringBytes)
}

// checkOptionalText is checkText for a field that may be empty, with the limit of the field
// in bytes.
func checkOptionalText(field, value string, limit int) error {
	if len(value) > limit {
		return status.Errorf(codes.InvalidArgument, "%s has %d bytes, at most %d are allowed", field, len(value), limit)
	}
	if strings.ContainsFunc(value, isForbidden) {
		return status.Errorf(codes.InvalidArgument, "%s contains a control character", field)
	}
	return nil
}

// isForbidden reports whether CSI forbids the character in names: control characters other
// than tab, line feed and carriage return.
func isForbidden(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r <= 0x9f
}

// checkNode requires the ID of a node.
func checkNode(id string) error {
	if id == "" {
		return status.Error(codes.InvalidArgument, "node_id is required")
	}
	return checkOptionalText("node_id", id, maxNodeIDBytes)
}

// checkPath requires an absolute path.
func checkPath(field, value string) error {
	switch {
	case value == "":
		return status.Errorf(codes.InvalidArgument, "%s is required", field)
	case !filepath.IsAbs(value):
		return status.Errorf(codes.InvalidArgument, "%s %q must be an absolute path", field, value)
	case strings.ContainsRune(value, 0):
		return status.Errorf(codes.InvalidArgument, "%s contains a zero byte", field)
	}
	return nil
}

// checkOptionalPath requires an absolute path or none.
func checkOptionalPath(field, value string) error {
	if value == "" {
		return nil
	}
	return checkPath(field, value)
}

// checkMap refuses a map above the size limit of CSI.
func checkMap(field string, values map[string]string) error {
	size := 0
	for key, value := range values {
		size += len(key) + len(value)
	}
	if size > maxMapBytes {
		return status.Errorf(codes.InvalidArgument, "%s has %d bytes, at most %d are allowed", field, size, maxMapBytes)
	}
	return nil
}

// checkMutable refuses unknown mutable parameters and empty values.
func (d *Driver) checkMutable(parameters map[string]string) error {
	if len(parameters) > 0 && !d.config.Capabilities.Has(Modify) {
		return status.Error(codes.InvalidArgument, "mutable_parameters is set, but the driver does not have MODIFY_VOLUME")
	}
	for key, value := range parameters {
		if !slices.Contains(d.config.MutableParameters, key) {
			return status.Errorf(codes.InvalidArgument, "mutable parameter %q is not known, known are %s", key,
				strings.Join(d.config.MutableParameters, ", "))
		}
		if value == "" {
			return status.Errorf(codes.InvalidArgument, "mutable parameter %q has no value", key)
		}
	}
	return checkMap("mutable_parameters", parameters)
}

// checkRange refuses an invalid capacity range. A nil range is valid.
func checkRange(wanted *csi.CapacityRange) error {
	required, limit := wanted.GetRequiredBytes(), wanted.GetLimitBytes()
	switch {
	case wanted == nil:
		return nil
	case required < 0 || limit < 0:
		return status.Errorf(codes.InvalidArgument, "capacity_range must not be negative, got %d to %d bytes", required,
			limit)
	case required == 0 && limit == 0:
		return status.Error(codes.InvalidArgument, "capacity_range must have required_bytes or limit_bytes")
	case limit > 0 && limit < required:
		return status.Errorf(codes.InvalidArgument, "capacity_range has a limit of %d bytes below the required %d", limit,
			required)
	}
	return nil
}

// checkSecrets refuses a request with a field for secrets that lacks a required secret. The
// error never contains received values.
func (d *Driver) checkSecrets(request any) error {
	secret, ok := request.(interface{ GetSecrets() map[string]string })
	if !ok {
		return nil
	}
	for key, wanted := range d.config.Secrets {
		if secret.GetSecrets()[key] != wanted {
			return status.Errorf(codes.Unauthenticated, "secrets lack the right value of %q", key)
		}
	}
	return nil
}
