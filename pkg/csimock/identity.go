package csimock

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// vendorVersion is the version that the driver reports.
const vendorVersion = "1"

// identityServer is the Identity service.
type identityServer struct {
	csi.UnimplementedIdentityServer
	*Driver
}

// GetPluginInfo returns the name and the version of the driver.
func (s *identityServer) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.config.Name, VendorVersion: vendorVersion}, nil
}

// GetPluginCapabilities returns the capabilities of the plugin.
func (s *identityServer) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	capabilities := advertised(s.config.Capabilities, pluginServices, pluginService)
	if s.config.Capabilities.Has(Expansion) {
		capabilities = append(capabilities, onlineExpansion())
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: capabilities}, nil
}

// Probe reports that the driver is ready. A fault on Probe makes it unhealthy.
func (*identityServer) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// pluginService returns a service as a plugin capability.
func pluginService(kind csi.PluginCapability_Service_Type) *csi.PluginCapability {
	return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
		Service: &csi.PluginCapability_Service{Type: kind},
	}}
}

// onlineExpansion returns the plugin capability to expand volumes in use.
func onlineExpansion() *csi.PluginCapability {
	return &csi.PluginCapability{Type: &csi.PluginCapability_VolumeExpansion_{
		VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE},
	}}
}
