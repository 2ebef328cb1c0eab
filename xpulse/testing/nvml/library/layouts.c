/* The structures of nvml.h, with their sizes: what the bindings pass must be what is filled here. */

#define LAYOUT(type_, size_) _Static_assert(sizeof(type_) == (size_), #type_)
#define VERSION(type_, number_) ((uint)(sizeof(type_) | (uint)(number_) << 24))
#define CHECK_VERSION(out_, type_, number_) \
    if (!(out_)) return INVALID_ARGUMENT;   \
    if ((out_)->version != VERSION(type_, number_)) return ARGUMENT_VERSION_MISMATCH

typedef struct {
    char bus_id_legacy[16];
    uint domain, bus, device, pci_device_id, pci_sub_system_id;
    char bus_id[32];
} pci_info;
LAYOUT(pci_info, 68);
typedef struct { uint version, domain, bus, device, pci_device_id, pci_sub_system_id, base_class, sub_class; char bus_id[32]; } pci_info_ext;
LAYOUT(pci_info_ext, 64);
typedef struct { ull total, free, used; } memory_v1;
LAYOUT(memory_v1, 24);
typedef struct { uint version; ull total, reserved, free, used; } memory_v2;
LAYOUT(memory_v2, 40);
typedef struct { uint gpu, memory; } utilization;
LAYOUT(utilization, 8);
typedef struct { uint version, sensor; int temperature; } temperature_v1;
LAYOUT(temperature_v1, 12);
typedef struct { uint version; int margin; } margin_v1;
LAYOUT(margin_v1, 8);
typedef struct { uint version, fan, speed; } fan_speed_v1;
LAYOUT(fan_speed_v1, 12);
typedef struct { ull reference, violation; } violation_time;
LAYOUT(violation_time, 16);
typedef struct {
    uint version;
    ull aggregate_parity, aggregate_secded, aggregate_corrected, volatile_parity, volatile_secded, volatile_corrected;
    ull l2, sm, pcie, mcu, other;
    uint threshold_exceeded;
} sram_status_v1;
LAYOUT(sram_status_v1, 104);
typedef struct { uint max, high, partial, low, none; } remap_histogram;
LAYOUT(remap_histogram, 20);
typedef struct { uint corrected, corrected_inactive, uncorrected, uncorrected_inactive, pending, failed; } remapped_v2;
LAYOUT(remapped_v2, 24);
typedef struct { uint version, channel, tpc; } repair_v1;
LAYOUT(repair_v1, 12);
typedef struct { uint version, unrepairable; } unrepairable_v1;
LAYOUT(unrepairable_v1, 8);
typedef struct { uint version, value; } versioned_uint;
LAYOUT(versioned_uint, 8);
typedef struct { uint version; ull value; } pdi_v1;
LAYOUT(pdi_v1, 16);
typedef struct { uint enabled; } c2c_mode_v1;
LAYOUT(c2c_mode_v1, 4);
typedef struct {
    uint field, scope;
    long long timestamp, latency;
    uint type;
    ret result;
    union { double d; int i; uint u; unsigned long ul; ull ull_; long long sll; unsigned short us; } value;
} field_value;
LAYOUT(field_value, 40);
typedef struct { uint version; unsigned char cluster[16]; ret status; uint clique; uint state, health; } fabric_v2;
LAYOUT(fabric_v2, 36);
typedef struct { uint version; unsigned char cluster[16]; ret status; uint clique; uint state, health; unsigned char summary; } fabric_v3;
LAYOUT(fabric_v3, 40);
typedef struct { unsigned char cluster[16]; ret status; uint clique, state; } fabric_v1;
LAYOUT(fabric_v1, 28);
typedef struct { uint version; char ib_guid[16], chassis_serial[16]; unsigned char slot, tray, host, peer, module; } platform_v2;
LAYOUT(platform_v2, 44);
typedef struct { uint version, supported; } gpm_support;
LAYOUT(gpm_support, 8);
typedef struct { uint id; ret result; double value; const char *short_name, *long_name, *unit; } gpm_metric;
LAYOUT(gpm_metric, 40);
typedef struct { const struct device *of; uint gi; bool taken; } gpm_sample;
typedef struct { uint version, count; gpm_sample *one, *two; gpm_metric metrics[477]; } gpm_metrics;
LAYOUT(gpm_metrics, 19104);
typedef struct { uint pid; ull memory; uint gi, ci; } process_info;
LAYOUT(process_info, 24);
typedef struct { uint pid; ull memory; uint gi, ci; ull protected_memory; } process_detail_v1;
LAYOUT(process_detail_v1, 32);
typedef struct { uint version, mode, count; process_detail_v1 *list; } process_details_v1;
LAYOUT(process_details_v1, 24);
typedef struct { uint pid; ull at_us; uint sm, memory, encoder, decoder; } process_sample;
LAYOUT(process_sample, 32);
typedef struct { ull at_us; uint pid, sm, memory, encoder, decoder, jpeg, ofa; } process_use_v1;
LAYOUT(process_use_v1, 40);
typedef struct { uint version, count; ull after_us; process_use_v1 *list; } process_uses_v1;
LAYOUT(process_uses_v1, 24);
typedef struct { uint multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices; ull memory_mib; } attributes_v2;
LAYOUT(attributes_v2, 40);
typedef struct { struct device *device; ull type, data; uint gi, ci; } event_data;
LAYOUT(event_data, 32);
typedef struct { uint year; unsigned short month, day, hour, minute, second; unsigned char status; } license_expiry;
LAYOUT(license_expiry, 16);
typedef struct { unsigned char licensed; license_expiry expiry; uint state; } license_info;
LAYOUT(license_info, 24);
typedef struct { uint code, state; char info[128], product[128]; uint enabled; license_expiry expiry; } licensable_feature_v4;
typedef struct { int supported; uint count; licensable_feature_v4 list[3]; } licensable_features_v4;
LAYOUT(licensable_feature_v4, 284);
LAYOUT(licensable_features_v4, 860);
typedef union { double d; uint u; unsigned long ul; ull ull_; long long sll; } sampled;
typedef struct { ull at_us; uint instance; sampled sm, memory, encoder, decoder, jpeg, ofa; } vgpu_use_v1;
LAYOUT(vgpu_use_v1, 64);
typedef struct { uint version, type, count; ull after_us; vgpu_use_v1 *list; } vgpu_uses_v1;
LAYOUT(vgpu_uses_v1, 32);
