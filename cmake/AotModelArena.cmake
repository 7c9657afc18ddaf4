# aot_model_arena(<target>
#     LIBRARIES <library>...                      what aot_model_library() made, with the workspace of the caller
#     [POOL_SECTIONS <pool>=<section>...]         linker sections of the pools' arrays
# )
# Makes <target>, a STATIC library of <target>.h and <target>.c: an array for each pool, as large as the model that needs most
# of it, and what each model is to be given. Linking to it is linking to the libraries; they must not run at the same time.
# The target's name as a C identifier is that of the files and symbols.
include_guard(GLOBAL)

function(aot_model_arena target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES;POOL_SECTIONS")
    set(call "aot_model_arena(${target})")
    _aot_model_check_arguments("${call}")
    if (NOT arg_LIBRARIES)
        message(FATAL_ERROR "${call}: LIBRARIES are missing")
    endif ()
    set(files "")
    foreach (library IN LISTS arg_LIBRARIES)
        _aot_model_metadata(metadata "${call}" "LIBRARIES" "${library}")
        list(APPEND files "${metadata}")
    endforeach ()
    list(TRANSFORM arg_POOL_SECTIONS PREPEND "--pool-section=")
    if (CMAKE_GENERATOR MATCHES "Ninja")
        list(APPEND arg_POOL_SECTIONS --keep-unchanged)
    endif ()
    _aot_model_name(name "aot_model_arena(${target})" "${target}")
    _aot_model_folder(dir "${target}" "${files}")
    _aot_model_add_command(
        OUTPUT "${dir}/${name}.c" "${dir}/${name}.h"
        ARGUMENTS arena ${files} -o "${dir}" "--name=${name}" ${arg_POOL_SECTIONS}
        DEPENDS ${files}
        COMMENT "Generating ${target}"
    )
    add_library(${target} STATIC "${dir}/${name}.c")
    add_library(${PROJECT_NAME}::${target} ALIAS ${target})
    _aot_model_require_c99(${target})
    target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${dir}" FILES "${dir}/${name}.h")
    target_link_libraries(${target} PUBLIC ${arg_LIBRARIES})
    set_source_files_properties("${dir}/${name}.c" PROPERTIES SKIP_LINTING ON)
endfunction()

# Sets <result> to the metadata of a library, or stops.
function(_aot_model_metadata result call keyword library)
    set(metadata "")
    if (TARGET "${library}")
        get_target_property(metadata "${library}" AOT_MODEL_METADATA)
    endif ()
    if (NOT metadata)
        message(FATAL_ERROR "${call}: ${keyword} '${library}' was not made by aot_model_library()")
    endif ()
    set(${result} "${metadata}" PARENT_SCOPE)
endfunction()
