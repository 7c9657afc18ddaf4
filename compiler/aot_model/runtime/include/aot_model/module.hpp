// Compiled models in C++11: a session of aot_model/module.h that owns its storage and throws. Part of aot-model.
#ifndef AOT_MODEL_MODULE_HPP
#define AOT_MODEL_MODULE_HPP

#include "aot_model/module.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace aot_model {

// A function of a model returned an error; status() is an AOT_MODEL_ERROR_….
class Error : public std::runtime_error {
public:
    Error(const char *model, const char *what, int32_t status)
        : std::runtime_error(std::string(model) + ": " + what + ": error " + std::to_string(status)), status_(status)
    {
    }
    int32_t status() const { return status_; }

private:
    int32_t status_;
};

// A model in use. Throws Error from the constructor and from everything that can fail.
class Session {
public:
    explicit Session(const aot_model_module &module, bool copies = true)
        : storage_(static_cast<std::size_t>(aot_model_storage_bytes(&module, copies)) + aot_model_storage_align(&module)), session_()
    {
        const std::uintptr_t align = aot_model_storage_align(&module);
        uint8_t *const base = storage_.data() + ((align - reinterpret_cast<std::uintptr_t>(storage_.data()) % align) % align);
        check(module, "open", aot_model_open(&session_, &module, base, aot_model_storage_bytes(&module, copies), copies));
    }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    const aot_model_metadata &metadata() const { return *session_.module->metadata; }
    int32_t input(const char *name) const { return index("input", aot_model_get_input_index(session_.module, name)); }
    int32_t output(const char *name) const { return index("output", aot_model_get_output_index(session_.module, name)); }

    void set_input(int32_t k, const aot_model_dl_tensor &t) { check("set_input", aot_model_set_input(&session_, k, &t)); }
    void set_input_zero_copy(int32_t k, const aot_model_dl_tensor &t) { check("set_input", aot_model_set_input_zero_copy(&session_, k, &t)); }
    void set_output_zero_copy(int32_t k, const aot_model_dl_tensor &t) { check("set_output", aot_model_set_output_zero_copy(&session_, k, &t)); }
    void run() { check("run", aot_model_run(&session_)); }

    // A view of an output; `shape` gets its extents and must outlive the view.
    aot_model_dl_tensor get_output(int32_t k, std::vector<int64_t> &shape) const
    {
        aot_model_dl_tensor view = aot_model_dl_tensor();
        shape.assign(255, 0);
        check("get_output", aot_model_get_output(&session_, k, &view, shape.data(), 255));
        shape.resize(static_cast<std::size_t>(view.ndim));
        view.shape = shape.data();
        return view;
    }

private:
    static void check(const aot_model_module &module, const char *what, int32_t status)
    {
        if (status != AOT_MODEL_OK) {
            throw Error(module.metadata->name, what, status);
        }
    }
    void check(const char *what, int32_t status) const { check(*session_.module, what, status); }
    int32_t index(const char *what, int32_t found) const
    {
        check(what, found < 0 ? found : AOT_MODEL_OK);
        return found;
    }

    std::vector<uint8_t> storage_;
    aot_model_session session_;
};

} // namespace aot_model

#endif
