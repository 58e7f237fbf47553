// Package metrics counts the volumes and claims of the cluster under the names
// and labels of kube-controller-manager, so that dashboards stay as they are:
//
//	metric                          labels                                             counts
//	pv_collector_total_pv_count     plugin_name, volume_mode                           volumes
//	pv_collector_bound_pv_count     storage_class                                      volumes in phase Bound
//	pv_collector_unbound_pv_count   storage_class                                      all other volumes
//	pv_collector_bound_pvc_count    namespace, storage_class, volume_attributes_class  claims in phase Bound
//	pv_collector_unbound_pvc_count  namespace, storage_class, volume_attributes_class  all other claims
//
// They are counted when they are asked for, in the caches. The package counts
// objects only: what a reconciler does, it counts itself.
package metrics
